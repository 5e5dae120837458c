# A CMake package and a file for pkg-config, in two components that can be installed alone:
#   library: the C library, shared: target ptkit::ptkit
#   core: the C++ libraries and the static C library: targets ptkit::core, ptkit::ptmodel, ptkit::ptkit_static
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/ptkit)

install(TARGETS ptkit EXPORT ptkitLibraryTargets
  LIBRARY COMPONENT library NAMELINK_COMPONENT library)
install(EXPORT ptkitLibraryTargets NAMESPACE ptkit:: DESTINATION ${package} COMPONENT library)

install(TARGETS ptkit_core ptkit_ptmodel ptkit_static ptkit_warnings ptkit_zydis ptkit_libelf ptkit_libdw ptkit_lzma ptkit_zstd ptkit_json ptkit_demangle
  EXPORT ptkitTargets COMPONENT core)
install(DIRECTORY src/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ptkit COMPONENT core
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def"
  PATTERN api EXCLUDE PATTERN libipt EXCLUDE)
install(DIRECTORY ptmodel DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ptkit COMPONENT core
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
# What headers of trace_unit include, and drivers' sequences, which are part of the library.
install(DIRECTORY kernel/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ptkit COMPONENT core)
install(DIRECTORY kernel/common DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ptkit COMPONENT core
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
set_target_properties(ptkit_core PROPERTIES EXPORT_NAME core)
set_target_properties(ptkit_ptmodel PROPERTIES EXPORT_NAME ptmodel)
install(EXPORT ptkitTargets NAMESPACE ptkit:: DESTINATION ${package} COMPONENT core)

configure_package_config_file(cmake/ptkitConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/ptkitConfig.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/ptkitConfigVersion.cmake COMPATIBILITY SameMinorVersion)
# Relative, so that the installed folder can be moved.
file(RELATIVE_PATH PTKIT_PC_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
if(ptkit_demangle_INCLUDE)
  set(PTKIT_PC_DEMANGLE " ${ptkit_demangle_LIBRARY}")
endif()
configure_file(cmake/ptkit.pc.in ${CMAKE_CURRENT_BINARY_DIR}/ptkit.pc @ONLY)
foreach(component library core)
  install(FILES include/ptkit.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT ${component})
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ptkit.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT ${component})
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ptkitConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/ptkitConfigVersion.cmake
    DESTINATION ${package} COMPONENT ${component})
endforeach()
