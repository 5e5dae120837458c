#pragma once

#include_next <fcntl.h>

#define F_GETFD 1
#define fcntl(descriptor, command) (-1)
