# Libraries from the system, or from where CMAKE_PREFIX_PATH says. Each interface target is linked only where the
# layers allow it. What is missing is said once, for all of them, with the packages that have it.
find_package(Threads REQUIRED)

set(PTKIT_MISSING "")
set(PTKIT_MISSING_DEBIAN "")
set(PTKIT_MISSING_FEDORA "")
macro(ptkit_is_missing what debian fedora)
  list(APPEND PTKIT_MISSING "${what}")
  list(APPEND PTKIT_MISSING_DEBIAN ${debian})
  list(APPEND PTKIT_MISSING_FEDORA ${fedora})
endmacro()

# The version in a header: `regex` has one group. Empty if it is not there.
function(ptkit_header_version result header regex)
  set(version "")
  if(EXISTS ${header})
    file(STRINGS ${header} line REGEX "${regex}" LIMIT_COUNT 1)
    if(line MATCHES "${regex}")
      set(version ${CMAKE_MATCH_1})
    endif()
  endif()
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

macro(ptkit_find_library target header library debian fedora)
  find_path(${target}_INCLUDE ${header})
  find_library(${target}_LIBRARY ${library})
  if(${target}_INCLUDE AND ${target}_LIBRARY)
    add_library(${target} INTERFACE)
    target_include_directories(${target} SYSTEM INTERFACE $<BUILD_INTERFACE:${${target}_INCLUDE}>)
    target_link_libraries(${target} INTERFACE $<BUILD_INTERFACE:${${target}_LIBRARY}>
                                              $<INSTALL_INTERFACE:${library}>)
  else()
    ptkit_is_missing("${library} (${header})" ${debian} ${fedora})
  endif()
endmacro()

ptkit_find_library(ptkit_zydis Zydis/Zydis.h Zydis libzydis-dev zydis-devel)
if(PTKIT_PORTABLE)
  # Zydis and what it is made of, as static libraries.
  ptkit_find_library(ptkit_zycore Zycore/Zycore.h Zycore libzycore-dev zycore-c-devel)
  if(TARGET ptkit_zydis AND TARGET ptkit_zycore)
    target_link_libraries(ptkit_zydis INTERFACE ptkit_zycore)
    target_compile_definitions(ptkit_zydis INTERFACE ZYDIS_STATIC_BUILD ZYCORE_STATIC_BUILD)
  endif()
else()
  ptkit_find_library(ptkit_libelf libelf.h elf libelf-dev elfutils-libelf-devel)
  ptkit_find_library(ptkit_libdw elfutils/libdw.h dw libdw-dev elfutils-devel)
  ptkit_find_library(ptkit_lzma lzma.h lzma liblzma-dev xz-devel)
  ptkit_find_library(ptkit_zstd zstd.h zstd libzstd-dev libzstd-devel)
  find_path(ptkit_json_INCLUDE nlohmann/json.hpp)
  if(ptkit_json_INCLUDE)
    add_library(ptkit_json INTERFACE)
    target_include_directories(ptkit_json SYSTEM INTERFACE $<BUILD_INTERFACE:${ptkit_json_INCLUDE}>)
  else()
    ptkit_is_missing("nlohmann/json.hpp" nlohmann-json3-dev json-devel)
  endif()
endif()

if(TARGET ptkit_zydis)
  ptkit_header_version(zydis_major ${ptkit_zydis_INCLUDE}/Zydis/Zydis.h
    "define ZYDIS_VERSION .*0x([0-9A-Fa-f][0-9A-Fa-f][0-9A-Fa-f][0-9A-Fa-f])")
  if(zydis_major AND zydis_major LESS 4)
    ptkit_is_missing("Zydis 4 or newer (${ptkit_zydis_INCLUDE} has ${zydis_major})" libzydis-dev zydis-devel)
  endif()
endif()

if(PTKIT_MISSING)
  list(JOIN PTKIT_MISSING ", " missing)
  list(JOIN PTKIT_MISSING_DEBIAN " " debian)
  list(JOIN PTKIT_MISSING_FEDORA " " fedora)
  message(FATAL_ERROR "ptkit needs ${missing}.\n"
    "  Debian, Ubuntu: apt-get install ${debian}\n"
    "  Fedora: dnf install ${fedora}\n"
    "Libraries elsewhere are found with -DCMAKE_PREFIX_PATH=FOLDER.")
endif()

if(PTKIT_PORTABLE)
  return()
endif()

# Optional: the reference decoder.
find_path(ptkit_libipt_INCLUDE intel-pt.h)
find_library(ptkit_libipt_LIBRARY ipt)
set(LIBIPT_FOUND OFF)
if(ptkit_libipt_INCLUDE AND ptkit_libipt_LIBRARY)
  ptkit_header_version(libipt_major ${ptkit_libipt_INCLUDE}/intel-pt.h "define LIBIPT_VERSION_MAJOR ([0-9]+)")
  if(libipt_major GREATER_EQUAL 2)
    set(LIBIPT_FOUND ON)
    add_library(ptkit_libipt INTERFACE)
    target_include_directories(ptkit_libipt SYSTEM INTERFACE ${ptkit_libipt_INCLUDE})
    target_link_libraries(ptkit_libipt INTERFACE ${ptkit_libipt_LIBRARY})
  endif()
endif()
if(PTKIT_REFERENCE AND NOT LIBIPT_FOUND)
  message(STATUS "libipt 2 not found: engine=\"libipt\" will not be there "
    "(Debian: apt-get install libipt-dev; Fedora: dnf install libipt-devel)")
endif()
