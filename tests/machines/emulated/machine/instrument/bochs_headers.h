// Bochs' own headers, in the order that they need.
#pragma once

// clang-format off
#include "bochs.h"
#include "cpu.h"
#include "apic.h"
#include "gui/paramtree.h"
#include "gui/siminterface.h"
#include "memory/memory-bochs.h"
#include "param_names.h"
#include "pc_system.h"
// clang-format on
