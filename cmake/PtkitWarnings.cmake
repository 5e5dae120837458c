# Warnings and sanitizers, as one interface target.
add_library(ptkit_warnings INTERFACE)
target_compile_options(ptkit_warnings INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>
  $<$<BOOL:${PTKIT_WERROR}>:-Werror>)
if(PTKIT_SANITIZE)
  # The check of virtual tables opens pipes, which confined processes may not.
  add_compile_options(-fsanitize=${PTKIT_SANITIZE} -fno-sanitize=vptr -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${PTKIT_SANITIZE})
endif()
