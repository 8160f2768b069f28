# What `cmake --install` puts in place: the program, the library with its public headers, and what finds it.
#
# The library is base (as far as needed), ring and event_array in one archive: target dwell::dwell of find_package(dwell),
# or pkg-config dwell. In the tree headers name each other by their folder ("ring/record.h"); installed they lie under
# include/dwell and say so ("dwell/ring/record.h"), so that no folder of a user can stand in for one of ours.
if(DWELL_SANITIZE OR DWELL_FUZZ)
  return()
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(DWELL_PUBLIC_HEADERS
    base/fd.h base/result.h
    ring/backward_reader.h ring/layout.h ring/record.h ring/ring_reader.h ring/ring_writer.h
    event_array/async_query.h event_array/bpf_map.h event_array/event_array.h event_array/event_ring.h
    event_array/event_session.h event_array/kernel_event_array.h event_array/mapping.h event_array/perf_kernel.h
    event_array/perf_ring.h event_array/ring_sizes.h event_array/time_order.h event_array/user_event_array.h
    event_array/user_event_map.h event_array/user_map_memory.h event_array/windows_compat.h)

add_library(dwell_archive STATIC $<TARGET_OBJECTS:dwell_base> $<TARGET_OBJECTS:dwell_ring>
                                 $<TARGET_OBJECTS:dwell_event_array>)
set_target_properties(dwell_archive PROPERTIES OUTPUT_NAME dwell EXPORT_NAME dwell LINKER_LANGUAGE CXX)
target_compile_features(dwell_archive INTERFACE cxx_std_23)
target_include_directories(dwell_archive INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
target_link_libraries(dwell_archive INTERFACE fmt::fmt Threads::Threads)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/dwell")
set(generated "${CMAKE_BINARY_DIR}/install")
file(CONFIGURE OUTPUT "${generated}/dwellConfig.cmake" @ONLY CONTENT [[
include(CMakeFindDependencyMacro)
find_dependency(fmt)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/dwellTargets.cmake")
]])
write_basic_package_version_file("${generated}/dwellConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
# Relative to the file, so that the tree can be moved.
file(RELATIVE_PATH up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
file(CONFIGURE OUTPUT "${generated}/dwell.pc" @ONLY CONTENT [[
prefix=${pcfiledir}/@up@
libdir=${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=${prefix}/@CMAKE_INSTALL_INCLUDEDIR@

Name: dwell
Description: Readers and writers of perf event arrays, in the kernel and in user space
Version: @PROJECT_VERSION@
Requires: fmt
Libs: -L${libdir} -ldwell -pthread
Cflags: -I${includedir}
]])

install(TARGETS dwell_archive EXPORT dwellTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT dwellTargets NAMESPACE dwell:: DESTINATION "${package_dir}")
install(FILES "${generated}/dwellConfig.cmake" "${generated}/dwellConfigVersion.cmake" DESTINATION "${package_dir}")
install(FILES "${generated}/dwell.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
install(CODE "set(headers \"${DWELL_PUBLIC_HEADERS}\")
set(source \"${PROJECT_SOURCE_DIR}/src\")
set(stage \"${generated}/include\")
set(destination \"${CMAKE_INSTALL_INCLUDEDIR}/dwell\")")
install(SCRIPT "${PROJECT_SOURCE_DIR}/cmake/InstallHeaders.cmake")
install(FILES LICENSE README.md CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY LICENSES docs DESTINATION "${CMAKE_INSTALL_DOCDIR}")
