# The driver's sources and how they are compiled. Builds for tests take other processors than these of MACHINE.
set(PTKIT_DRIVER_FOLDER ${CMAKE_CURRENT_LIST_DIR})
file(GLOB PTKIT_DRIVER_SOURCES CONFIGURE_DEPENDS
  ${PTKIT_DRIVER_FOLDER}/main.c ${PTKIT_DRIVER_FOLDER}/session/*.c ${PTKIT_DRIVER_FOLDER}/sideband/*.c
  ${PTKIT_DRIVER_FOLDER}/unit/*.c ${PTKIT_DRIVER_FOLDER}/../common/*.c)
list(APPEND PTKIT_DRIVER_SOURCES ${PTKIT_DRIVER_FOLDER}/machine/caps.c ${PTKIT_DRIVER_FOLDER}/machine/waiter.c)
set(PTKIT_DRIVER_MACHINE
  ${PTKIT_DRIVER_FOLDER}/machine/machine.c ${PTKIT_DRIVER_FOLDER}/machine/msr.S
  ${PTKIT_DRIVER_FOLDER}/machine/tables.c)

find_path(PTKIT_DDK_FOLDER ntddk.h PATHS /usr/share/mingw-w64/include/ddk NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH REQUIRED)

# No C library, no stack probes (there is no such function), and Windows 10.
function(ptkit_make_driver target)
  target_include_directories(${target} PRIVATE
    ${PTKIT_DRIVER_FOLDER} ${PTKIT_DRIVER_FOLDER}/.. ${PTKIT_DRIVER_FOLDER}/../include)
  target_include_directories(${target} SYSTEM PRIVATE ${PTKIT_DDK_FOLDER})
  target_compile_definitions(${target} PRIVATE _WIN32_WINNT=0x0A00 NTDDI_VERSION=0x0A000000)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:C>:
    -std=gnu11 -O2 -ffreestanding -mno-red-zone -mno-stack-arg-probe -Wframe-larger-than=2048
    -Wall -Wextra -Werror -Wmissing-prototypes -Wno-unknown-pragmas>)
  target_link_options(${target} PRIVATE
    -nostdlib -Wl,--subsystem,native -Wl,--entry,DriverEntry -Wl,--image-base,0x140000000
    -Wl,--dynamicbase -Wl,--nxcompat -Wl,--major-subsystem-version,10 -Wl,--minor-subsystem-version,0
    -Wl,--major-os-version,10 -Wl,--minor-os-version,0 -Wl,-Map,${target}.map)
  target_link_libraries(${target} PRIVATE ntoskrnl hal gcc)
  set_target_properties(${target} PROPERTIES SUFFIX .sys C_STANDARD_LIBRARIES "")
endfunction()
