# A CMake package: find_package(ptkit), targets ptkit::core and ptkit::ptmodel.
include(CMakePackageConfigHelpers)
install(TARGETS ptkit_core ptkit_ptmodel ptkit_warnings ptkit_zydis ptkit_libelf ptkit_zstd ptkit_json EXPORT ptkitTargets COMPONENT core)
install(DIRECTORY src/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ptkit COMPONENT core
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def"
  PATTERN bindings EXCLUDE PATTERN reference EXCLUDE)
# What headers of msr and softpt include, and drivers' sequences, which are part of the library.
install(DIRECTORY kernel/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ptkit COMPONENT core)
install(DIRECTORY kernel/common DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ptkit COMPONENT core
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
set_target_properties(ptkit_core PROPERTIES EXPORT_NAME core)
set_target_properties(ptkit_ptmodel PROPERTIES EXPORT_NAME ptmodel)
install(EXPORT ptkitTargets NAMESPACE ptkit:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ptkit COMPONENT core)
configure_package_config_file(cmake/ptkitConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/ptkitConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ptkit)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/ptkitConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ptkitConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/ptkitConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ptkit COMPONENT core)
