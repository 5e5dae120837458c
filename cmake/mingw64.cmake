# Toolchain for the portable part: mingw.cmake with threads of the C++ library. Programs need no libraries but the
# system's, and run in Wine.
set(ptkit_prefix "${CMAKE_FIND_ROOT_PATH}")
include(${CMAKE_CURRENT_LIST_DIR}/mingw.cmake)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_CROSSCOMPILING_EMULATOR wine)
list(PREPEND CMAKE_FIND_ROOT_PATH ${ptkit_prefix})
