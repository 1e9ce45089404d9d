// SPDX-License-Identifier: Apache-2.0
//
// report.html: one page without outside references, for light and dark, wide and narrow.
#pragma once

#include "gnuplot.hpp"
#include "results.hpp"

#include <map>
#include <string>

namespace itspace::experiments::report {

struct PageFigures {
  Figure transport;                         // the explanatory picture
  std::map<std::string, Figure> alignment;  // by the name of the instance
  std::map<std::string, Figure> covdrift;
};

std::string to_page(const Results& results, const PageFigures& figures);

}  // namespace itspace::experiments::report
