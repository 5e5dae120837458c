# The core as a CMake package of its own: find_package(ptkit), target ptkit::core.
include(CMakePackageConfigHelpers)
install(TARGETS ptkit_core ptkit_warnings ptkit_zydis ptkit_libelf ptkit_zstd ptkit_json EXPORT ptkitTargets)
install(DIRECTORY src/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ptkit
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def"
  PATTERN bindings EXCLUDE PATTERN reference EXCLUDE)
# What headers of rtit and softpt include, and drivers' sequences, which are part of the library.
install(DIRECTORY kernel/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ptkit)
install(DIRECTORY kernel/common DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ptkit
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
set_target_properties(ptkit_core PROPERTIES EXPORT_NAME core)
install(EXPORT ptkitTargets NAMESPACE ptkit:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ptkit)
configure_package_config_file(cmake/ptkitConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/ptkitConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ptkit)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/ptkitConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ptkitConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/ptkitConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ptkit)
