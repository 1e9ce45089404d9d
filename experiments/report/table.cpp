// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace itspace::experiments::report {
namespace {

constexpr const char* nothing = "–";
constexpr const char* hurt_sign = "↓ ";

std::string markdown_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      result += ' ';
      continue;
    }
    if (c == '|' || c == '*' || c == '_' || c == '<' || c == '`' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string markdown_cell(const Cell& cell, const Column& column) {
  if (cell.empty()) return nothing;
  std::string text;
  for (const Part& part : cell) {
    if (!text.empty()) text += column.separator;
    const std::string shown = markdown_text(part.text);
    if (part.mark == Mark::best)
      text += fmt::format("**{}**", shown);
    else if (part.mark == Mark::hurts)
      text += fmt::format("{}{}", hurt_sign, shown);
    else
      text += shown;
  }
  return text;
}

bool has(const Cell& cell, Mark mark) {
  return std::any_of(cell.begin(), cell.end(), [&](const Part& part) { return part.mark == mark; });
}

std::string html_cell(const Cell& cell, const Column& column) {
  std::string classes = column.words ? "words" : "number";
  if (cell.empty()) return fmt::format("<td class=\"{}\">{}</td>", classes, nothing);
  if (has(cell, Mark::hurts)) classes += " hurts";
  if (has(cell, Mark::reference)) classes += " reference";
  std::string text;
  for (std::size_t i = 0; i < cell.size(); ++i) {
    const Part& part = cell[i];
    if (i > 0) text += escaped(column.separator);
    if (part.mark == Mark::best) {
      text += fmt::format("<strong>{}</strong>", escaped(part.text));
    } else if (part.mark == Mark::hurts) {
      text += fmt::format("<span class=\"down\" title=\"worse than no adaptation\">↓</span> {}", escaped(part.text));
    } else if (i < column.parts.size() && column.parts[i] == "std") {
      text += fmt::format("<small>{}</small>", escaped(part.text));
    } else {
      text += escaped(part.text);
    }
  }
  return fmt::format("<td class=\"{}\">{}</td>", classes, text);
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string full_header(const Column& column) {
  return column.group.empty() ? column.header : column.group + ", " + column.header;
}

bool has_row_groups(const Table& table) {
  return std::any_of(table.rows.begin(), table.rows.end(), [](const TableRow& row) { return !row.group.empty(); });
}

std::string html_head(const Table& table) {
  const bool grouped =
      std::any_of(table.columns.begin(), table.columns.end(), [](const Column& c) { return !c.group.empty(); });
  std::string html = "<thead>\n<tr>";
  html += fmt::format("<th scope=\"col\"{}>{}</th>", grouped ? " rowspan=\"2\"" : "", escaped(table.row_header));
  std::string second;
  for (std::size_t i = 0; i < table.columns.size();) {
    const Column& column = table.columns[i];
    if (column.group.empty()) {
      html += fmt::format("<th scope=\"col\"{}{}>{}</th>", grouped ? " rowspan=\"2\"" : "",
                          column.words ? " class=\"words\"" : "", escaped(column.header));
      ++i;
      continue;
    }
    std::size_t span = 0;
    for (; i < table.columns.size() && table.columns[i].group == column.group; ++i, ++span) {
      second += fmt::format("<th scope=\"col\">{}</th>", escaped(table.columns[i].header));
    }
    html += fmt::format("<th scope=\"colgroup\" class=\"over\" colspan=\"{}\">{}</th>", span, escaped(column.group));
  }
  html += "</tr>\n";
  if (grouped) html += "<tr>" + second + "</tr>\n";
  return html + "</thead>\n";
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
    }
  }
  return result;
}

std::string short_number(double value) {
  if (std::isnan(value)) return "n/a";
  if (std::isinf(value)) return value > 0 ? "∞" : "−∞";
  const double size = std::abs(value);
  if (size >= 999.5 && size < 1e7) return fmt::format("{:.0f}", value);
  std::string text = fmt::format("{:.3g}", value);
  // 1.2e-05 -> 1.2e-5
  if (const auto e = text.find('e'); e != std::string::npos) {
    const std::string sign = text[e + 1] == '-' ? "-" : "";
    const auto digits = text.find_first_not_of("+-0", e + 1);
    text = text.substr(0, e + 1) + sign + (digits == std::string::npos ? "0" : text.substr(digits));
  }
  return text;
}

std::string to_markdown(const Table& table) {
  std::string text = fmt::format("### {}\n\n", markdown_text(table.title));
  for (const std::string& sentence : table.how_to_read) text += fmt::format("{}\n", markdown_text(sentence));
  if (!table.how_to_read.empty()) text += "\n";
  const bool grouped = has_row_groups(table);
  std::string rule = "|";
  text += "|";
  if (grouped) {
    text += " |";
    rule += "---|";
  }
  text += fmt::format(" {} |", markdown_text(table.row_header));
  rule += "---|";
  for (const Column& column : table.columns) {
    text += fmt::format(" {} |", markdown_text(full_header(column)));
    rule += column.words ? "---|" : "---:|";
  }
  text += fmt::format("\n{}\n", rule);
  const std::string* last_group = nullptr;
  for (const TableRow& row : table.rows) {
    text += "|";
    if (grouped) {
      const bool same = last_group && *last_group == row.group;
      text += fmt::format(" {}|", same ? std::string() : fmt::format("{} ", markdown_text(row.group)));
      last_group = &row.group;
    }
    text += fmt::format(" {} |", markdown_text(row.label));
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      text += fmt::format(" {} |", markdown_cell(i < row.cells.size() ? row.cells[i] : Cell{}, table.columns[i]));
    }
    text += "\n";
  }
  text += "\n";
  for (const std::string& sentence : table.findings) text += fmt::format("{}\n", markdown_text(sentence));
  if (!table.findings.empty()) text += "\n";
  return text;
}

std::string to_html(const Table& table) {
  std::string html;
  if (!table.how_to_read.empty()) {
    html += "<p>";
    for (const std::string& sentence : table.how_to_read) html += escaped(sentence) + " ";
    html.back() = '<';
    html += "/p>\n";
  }
  html += fmt::format("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">\n<table>\n",
                      escaped(table.title));
  html += fmt::format("<caption>{}</caption>\n", escaped(table.title)) + html_head(table) + "<tbody>\n";
  const std::string* last_group = nullptr;
  for (const TableRow& row : table.rows) {
    if (!row.group.empty() && (!last_group || *last_group != row.group)) {
      if (last_group) html += "</tbody>\n<tbody>\n";
      html += fmt::format("<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"{}\"><span>{}</span></th></tr>\n",
                          table.columns.size() + 1, escaped(row.group));
    }
    last_group = &row.group;
    html += fmt::format("<tr{}><th scope=\"row\">{}</th>", row.ours ? " class=\"ours\"" : "", escaped(row.label));
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      html += html_cell(i < row.cells.size() ? row.cells[i] : Cell{}, table.columns[i]);
    }
    html += "</tr>\n";
  }
  html += "</tbody>\n</table>\n</div>\n";
  for (const std::string& sentence : table.findings) {
    html += fmt::format("<p class=\"finding\">{}</p>\n", escaped(sentence));
  }
  return html;
}

std::string csv_header() {
  return "table,group,row,column,part,value,shown\n";
}

std::string to_csv(const Table& table) {
  std::string csv;
  for (const TableRow& row : table.rows) {
    for (std::size_t i = 0; i < table.columns.size() && i < row.cells.size(); ++i) {
      const Column& column = table.columns[i];
      for (std::size_t j = 0; j < row.cells[i].size(); ++j) {
        const Part& part = row.cells[i][j];
        const std::string shown = (part.mark == Mark::hurts ? hurt_sign : "") + part.text;
        csv += fmt::format("{},{},{},{},{},{},{}\n", csv_field(table.id), csv_field(row.group), csv_field(row.label),
                           csv_field(full_header(column)), csv_field(j < column.parts.size() ? column.parts[j] : ""),
                           std::isnan(part.value) ? std::string() : fmt::format("{}", part.value), csv_field(shown));
      }
    }
  }
  return csv;
}

}  // namespace itspace::experiments::report
