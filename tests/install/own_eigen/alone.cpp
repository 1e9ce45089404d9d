// SPDX-License-Identifier: Apache-2.0
//
// The same products without the library: where this does not run, the compiler and Eigen are to blame.
#include "own_products.hpp"

int main() {
  own_products_of_all_kinds();
}
