// SPDX-License-Identifier: Apache-2.0
//
// gnuplot as a subprocess: a script in, an SVG out.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace itspace::experiments::report {

struct Figure {
  std::string svg;      // empty where it could not be drawn
  std::string missing;  // then: why, and what to do
};

// A drawing in the making: its size in pixels and the commands after `set terminal`.
struct Drawing {
  int width = 0, height = 0;
  std::string commands;
};

// Runs `program` with a script file in a folder of its own, without the user's settings.
Figure draw(const Drawing& drawing, const std::string& program);

// Text for a script: single quotes, within which gnuplot expands nothing.
std::string quoted(const std::string& text);

// A data block named `name`: one point per line. Points that are not finite break the line.
std::string data_block(const std::string& name, const std::vector<std::pair<double, double>>& points);

// Labels at the powers of ten in [low, high], at most `most` of them: "0.01", "1", "10⁵".
std::string decade_tics(double low, double high, int most);

// The same drawing for the inside of a page: no prolog, no outside reference, ids of its own (`name`), no background,
// and what was black takes the colour of the text around it. `label` is what a screen reader says.
std::string inline_svg(const std::string& svg, const std::string& name, const std::string& label);

}  // namespace itspace::experiments::report
