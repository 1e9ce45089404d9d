// SPDX-License-Identifier: Apache-2.0
//
// What a person reads of an experiment: tables, figures and one page that holds both.
//
//     Results ─▶ measures (medians, first passages, recovery) ─▶ tables ─┬▶ tables.md, tables.csv
//            └─▶ figures (scripts for gnuplot) ─▶ *.svg ─────────────────┴▶ report.html
#pragma once

#include "results.hpp"

#include <filesystem>

namespace itspace::experiments {

// Writes into `folder`, each file whole or not at all: results.json, tables.md, tables.csv, report.html, and where
// there is something to draw gap_curves_<instance>.svg, covdrift.svg and transport.svg. Without gnuplot the page says
// where a figure is missing and how to get it. Returns what is missing, in words; empty where all was written.
// @throws std::runtime_error where the folder cannot be written.
std::vector<std::string> write_report(const Results& results, const std::filesystem::path& folder,
                                      const std::string& gnuplot = "gnuplot");

}  // namespace itspace::experiments
