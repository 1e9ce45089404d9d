// SPDX-License-Identifier: Apache-2.0
//
// A table as values and words, and its three faces.
#pragma once

#include "statistics.hpp"

#include <string>
#include <vector>

namespace itspace::experiments::report {

enum class Mark { none, best, hurts, reference };

// One number of a cell, as shown and as it is.
struct Part {
  std::string text;
  double value = no_number;
  Mark mark = Mark::none;
};

using Cell = std::vector<Part>;  // empty: nothing to show here

struct Column {
  std::string header;
  std::string group;               // a heading over several neighbours
  std::vector<std::string> parts;  // what the numbers of a cell are, such as mean and std
  std::string separator = " ";     // between them
  bool words = false;              // set flush left, may wrap
};

struct TableRow {
  std::string group;  // neighbours that share it stand under one heading
  std::string label;
  std::vector<Cell> cells;  // one per column
  bool ours = false;
};

struct Table {
  std::string id;  // in the CSV and as an anchor
  std::string title;
  std::vector<std::string> how_to_read;  // sentences above
  std::string row_header;
  std::vector<Column> columns;
  std::vector<TableRow> rows;
  std::vector<std::string> findings;  // sentences below, computed from the numbers
};

std::string to_markdown(const Table& table);
std::string to_html(const Table& table);

// One line per number: table,group,row,column,part,value,shown. The value has all its digits; inf is "not reached".
std::string csv_header();
std::string to_csv(const Table& table);

// & < > " ' as entities; control characters become spaces.
std::string escaped(const std::string& text);

// Three significant digits, no exponent where one can do without: 0.0214, 19, 1234, 3.2e-5.
std::string short_number(double value);

}  // namespace itspace::experiments::report
