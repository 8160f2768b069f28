# dwell_native_object(NAME SOURCE file.bpf.c [DEFINITIONS ...] [INCLUDE ...])
#   BPF C that runs in this process: library native_NAME with `dwell_native_NAME` (runtime/native_object.h), for
#   runtime::Object::open. The source is compiled twice: for BPF, to read its maps from, and natively, against
#   src/runtime/shim. All its other names stay inside, so that several objects fit into one program.

find_program(OBJCOPY objcopy REQUIRED)

function(dwell_native_object name)
  cmake_parse_arguments(A "" "SOURCE" "DEFINITIONS;INCLUDE" ${ARGN})
  cmake_path(ABSOLUTE_PATH A_SOURCE)
  set(out "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  set(arch x86)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(arch arm64)
  endif()
  list(TRANSFORM A_DEFINITIONS PREPEND -D OUTPUT_VARIABLE definitions)
  list(TRANSFORM A_INCLUDE PREPEND -I OUTPUT_VARIABLE includes)
  add_custom_command(
    OUTPUT "${out}.native.c"
    COMMAND ${BPF_CLANG} -g -O2 -target bpf -mcpu=v3 -D__TARGET_ARCH_${arch} ${definitions} ${includes}
            -I${PROJECT_SOURCE_DIR} -idirafter /usr/include/${CMAKE_LIBRARY_ARCHITECTURE} -MD -MF "${out}.d" -MT "${out}.native.c"
            -c "${A_SOURCE}" -o "${out}.bpf.o"
    COMMAND native_table "${out}.bpf.o" "${A_SOURCE}" ${name} "${out}.native.c"
    DEPENDS "${A_SOURCE}" native_table
    DEPFILE "${out}.d"
    COMMENT "Listing maps and programs of ${name}"
    VERBATIM)

  add_library(native_${name}_compiled OBJECT "${out}.native.c")
  target_compile_definitions(native_${name}_compiled PRIVATE ${A_DEFINITIONS})
  target_include_directories(native_${name}_compiled PRIVATE "${PROJECT_SOURCE_DIR}/src/runtime/shim" ${A_INCLUDE}
                                                      "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}")
  # What is idiom in BPF C, and no fault: pragmas for another compiler, contexts that are not looked at.
  target_compile_options(native_${name}_compiled PRIVATE -fvisibility=hidden -std=gnu11 -fno-omit-frame-pointer -Wall -Wextra
                         -Wno-unknown-pragmas -Wno-unused-parameter -Wno-unused-function -Wno-pointer-sign
                         -Wno-attributes)
  if(DWELL_SANITIZE)
    target_compile_options(native_${name}_compiled PRIVATE -fsanitize=${DWELL_SANITIZE} -fno-sanitize-recover=all)
    if(CMAKE_C_COMPILER_ID MATCHES Clang)
      # Or the linker merges variables of one name from several objects; and callbacks of BPF helpers take contexts of
      # their own types.
      target_compile_options(native_${name}_compiled PRIVATE -fno-sanitize-address-globals-dead-stripping
                             -fno-sanitize=function)
    endif()
  endif()
  if(DWELL_FUZZ)
    target_compile_options(native_${name}_compiled PRIVATE -fsanitize=fuzzer-no-link)
  endif()

  add_custom_command(
    OUTPUT "${out}.native.o"
    COMMAND ${OBJCOPY} --localize-hidden "$<TARGET_OBJECTS:native_${name}_compiled>" "${out}.native.o"
    DEPENDS native_${name}_compiled "$<TARGET_OBJECTS:native_${name}_compiled>"
    COMMENT "Keeping the names of ${name} inside"
    VERBATIM)
  add_library(native_${name} STATIC "${out}.native.o")
  set_target_properties(native_${name} PROPERTIES LINKER_LANGUAGE C)
  set_source_files_properties("${out}.native.o" PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  target_link_libraries(native_${name} PUBLIC dwell_runtime)
endfunction()
