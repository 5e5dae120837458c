# Libraries from the system. Each interface target is linked only where the layers allow it.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

function(ptkit_find_library target header library package)
  find_path(${target}_INCLUDE ${header})
  find_library(${target}_LIBRARY ${library})
  if(NOT ${target}_INCLUDE OR NOT ${target}_LIBRARY)
    message(FATAL_ERROR "ptkit needs ${library} (${header}); on Debian and Ubuntu: apt-get install ${package}")
  endif()
  add_library(${target} INTERFACE)
  target_include_directories(${target} SYSTEM INTERFACE ${${target}_INCLUDE})
  target_link_libraries(${target} INTERFACE $<BUILD_INTERFACE:${${target}_LIBRARY}>
                                            $<INSTALL_INTERFACE:${library}>)
endfunction()

ptkit_find_library(ptkit_zydis Zydis/Zydis.h Zydis libzydis-dev)
ptkit_find_library(ptkit_libelf libelf.h elf libelf-dev)
ptkit_find_library(ptkit_zstd zstd.h zstd libzstd-dev)

find_path(ptkit_json_INCLUDE nlohmann/json.hpp)
if(NOT ptkit_json_INCLUDE)
  message(FATAL_ERROR "ptkit needs nlohmann/json.hpp; on Debian and Ubuntu: apt-get install nlohmann-json3-dev")
endif()
add_library(ptkit_json INTERFACE)
target_include_directories(ptkit_json SYSTEM INTERFACE $<BUILD_INTERFACE:${ptkit_json_INCLUDE}>)

# Optional: the reference decoder.
find_path(ptkit_libipt_INCLUDE intel-pt.h)
find_library(ptkit_libipt_LIBRARY ipt)
set(LIBIPT_FOUND OFF)
if(ptkit_libipt_INCLUDE AND ptkit_libipt_LIBRARY)
  set(LIBIPT_FOUND ON)
  add_library(ptkit_libipt INTERFACE)
  target_include_directories(ptkit_libipt SYSTEM INTERFACE ${ptkit_libipt_INCLUDE})
  target_link_libraries(ptkit_libipt INTERFACE ${ptkit_libipt_LIBRARY})
elseif(PTKIT_REFERENCE)
  message(STATUS "libipt not found: engine=\"libipt\" will not be there (apt-get install libipt-dev)")
endif()
