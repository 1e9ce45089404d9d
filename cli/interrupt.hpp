// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C: the first one asks the run to end where it can be left, the second one ends the program.
#pragma once

namespace itspace::cli {

void watch_for_interrupt();
bool interrupt_asked();

}  // namespace itspace::cli
