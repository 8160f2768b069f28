# The three kinds of target in this project, and the settings that all of them share.
#
#   dwell_library(NAME SOURCES ... LINK ...)   one per folder of src/: target dwell_NAME
#   dwell_test(NAME SOURCES ... LINK ... [ROOT] [THREADS])   a GoogleTest binary, run by ctest; ROOT: needs
#                                              privileges; THREADS: has threads, so is for the preset `tsan`
#   dwell_fuzzer(NAME SOURCE ... LINK ...)     a libFuzzer target with the preset `fuzz`, else a corpus replay

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

set(DWELL_SANITIZE "" CACHE STRING "Comma-separated sanitizers: address,undefined or thread")
option(DWELL_FUZZ "Build libFuzzer targets (clang only)" OFF)

# What it makes of the probe is what the verifiers of 6.1, 6.12 and 6.18 were shown: later ones use more of the stack,
# and 6.1 refuses the result.
find_program(BPF_CLANG NAMES clang-14 clang REQUIRED)

enable_testing()
find_package(GTest REQUIRED)
find_package(fmt REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

add_library(dwell_flags INTERFACE)
target_compile_options(dwell_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor
                       -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)  # libbpf's options are initialised by the names of some members
  target_compile_options(dwell_flags INTERFACE -Wno-missing-designated-field-initializers)
endif()
target_include_directories(dwell_flags INTERFACE "${PROJECT_SOURCE_DIR}/src"
                           "${PROJECT_SOURCE_DIR}")
if(DWELL_SANITIZE)
  target_compile_options(dwell_flags INTERFACE -fsanitize=${DWELL_SANITIZE}
                         -fno-sanitize-recover=all)
  target_link_options(dwell_flags INTERFACE -fsanitize=${DWELL_SANITIZE})
endif()
if(DWELL_FUZZ)
  target_compile_options(dwell_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

function(dwell_library name)
  cmake_parse_arguments(A "" "" "SOURCES;LINK" ${ARGN})
  add_library(dwell_${name} STATIC ${A_SOURCES})
  target_link_libraries(dwell_${name} PUBLIC dwell_flags ${A_LINK})
endfunction()

# All test binaries that the preset builds: with sanitizers only those that gain from it.
add_custom_target(dwell_tests)

function(dwell_test name)
  cmake_parse_arguments(A "ROOT;THREADS" "" "SOURCES;LINK;DEFINITIONS" ${ARGN})
  if(DWELL_SANITIZE STREQUAL "thread")
    if(NOT A_THREADS)
      return()
    endif()
  elseif(DWELL_SANITIZE AND A_ROOT)
    return()
  endif()
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE dwell_flags ${A_LINK} GTest::gtest GTest::gmock
                                        GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE ${A_DEFINITIONS})
  target_compile_options(${name} PRIVATE -O0) # halves the time to build; the code under test is optimised
  add_dependencies(dwell_tests ${name})
  add_test(NAME ${name} COMMAND ${name})
  if(A_ROOT)
    set_tests_properties(${name} PROPERTIES LABELS root RUN_SERIAL ON)
  endif()
endfunction()

function(dwell_fuzzer name)
  cmake_parse_arguments(A "" "SOURCE" "LINK" ${ARGN})
  if(DWELL_SANITIZE STREQUAL "thread")
    return()
  endif()
  if(DWELL_FUZZ)
    add_executable(${name} ${A_SOURCE})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(${name} ${A_SOURCE} "${PROJECT_SOURCE_DIR}/fuzz/replay_main.cc")
    add_test(NAME ${name} COMMAND ${name} "${PROJECT_SOURCE_DIR}/fuzz/corpus/${name}")
    add_dependencies(dwell_tests ${name})
  endif()
  target_link_libraries(${name} PRIVATE dwell_flags ${A_LINK})
endfunction()
