// SPDX-License-Identifier: Apache-2.0
//
// The trace as JSON and back. Missing numbers are NaN in memory and null in the file; numbers are written with the
// digits that restore them exactly, whatever the locale.
#include <cmath>
#include <itspace/io.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>

#include "core/trace_fields.hpp"
#include "error.hpp"
#include "mapped_file.hpp"

namespace itspace::io {
namespace {

using Json = nlohmann::ordered_json;  // keys stay in the order of the schema

Json as_json(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}
Json as_json(Index value) {
  return value;
}
Json as_json(std::optional<bool> value) {
  return value ? Json(*value) : Json(nullptr);
}
Json as_json(std::optional<Route> value) {
  return value ? Json(name(*value)) : Json(nullptr);
}
Json as_json(const std::string& value) {
  return value.empty() ? Json(nullptr) : Json(value);
}

Json to_json_object(const Step& step) {
  Json json;
  for (const RowField& field : row_fields) {
    json[field.name] = std::visit([&](auto member) { return as_json(step.*member); }, field.value);
  }
  return json;
}

// A value, where it stands in the document and which file that is: all that a message needs.
class Reader {
 public:
  Reader(const Json& json, std::string path, std::string_view where)
      : json_(json), path_(std::move(path)), where_(where) {}

  [[noreturn]] void refuse(std::string_view wanted) const {
    fail("{}: {} must be {}, is {}", where_, path_.empty() ? "the trace" : path_, wanted, shown());
  }

  Reader at(std::string_view key) const {
    require_object();
    const auto found = json_.find(key);
    if (found == json_.end()) {
      fail("{}: {} is missing; pass a trace of schema {}", where_, child(key), trace_schema);
    }
    return {*found, child(key), where_};
  }

  bool has(std::string_view key) const {
    require_object();
    return json_.contains(key);
  }

  std::vector<Reader> elements() const {
    if (!json_.is_array()) {
      refuse("an array");
    }
    std::vector<Reader> result;
    for (const Json& element : json_) {
      result.emplace_back(element, fmt::format("{}[{}]", path_, result.size()), where_);
    }
    return result;
  }

  bool is_null() const { return json_.is_null(); }
  bool is_text() const { return json_.is_string(); }

  std::string text() const {
    if (!json_.is_string()) {
      refuse("a string");
    }
    return json_.get<std::string>();
  }

  double number_or_null() const {
    if (json_.is_null()) {
      return not_a_number;
    }
    if (!json_.is_number()) {
      refuse("a number or null");
    }
    return json_.get<double>();
  }

  Index count() const {
    // Non-negative literals are read as unsigned.
    if (!json_.is_number_unsigned() || json_.get<std::uint64_t>() > std::numeric_limits<Index>::max()) {
      refuse("a non-negative integer");
    }
    return json_.get<Index>();
  }

  std::optional<bool> truth_or_null() const {
    if (json_.is_null()) {
      return std::nullopt;
    }
    if (!json_.is_boolean()) {
      refuse("true, false or null");
    }
    return json_.get<bool>();
  }

  Route route() const {
    const auto route = route_named(text());
    if (!route) {
      refuse("the name of a route");
    }
    return *route;
  }

  Status status() const {
    const auto status = status_named(text());
    if (!status) {
      refuse("the name of a status");
    }
    return *status;
  }

 private:
  void require_object() const {
    if (!json_.is_object()) {
      refuse("an object");
    }
  }

  std::string child(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  }

  std::string shown() const {
    if (json_.is_structured()) {
      return json_.is_object() ? "an object" : "an array";
    }
    constexpr std::size_t longest = 60;
    const std::string text = json_.dump(-1, ' ', false, Json::error_handler_t::replace);
    return text.size() <= longest ? text : text.substr(0, longest) + "...";
  }

  const Json& json_;
  std::string path_;
  std::string_view where_;
};

void read(const Reader& json, double& value) {
  value = json.number_or_null();
}
void read(const Reader& json, Index& value) {
  value = json.count();
}
void read(const Reader& json, std::optional<bool>& value) {
  value = json.truth_or_null();
}
void read(const Reader& json, std::optional<Route>& value) {
  if (!json.is_null()) {
    value = json.route();
  }
}
void read(const Reader& json, std::string& value) {
  if (!json.is_null()) {
    value = json.text();
  }
}

Step read_step(const Reader& json, Index row) {
  Step step;
  step.index = row;
  for (const RowField& field : row_fields) {
    if (field.required || json.has(field.name)) {
      std::visit([&](auto member) { read(json.at(field.name), step.*member); }, field.value);
    }
  }
  return step;
}

Trace read_trace(const Reader& json, std::string_view where) {
  const std::string schema = json.at("schema").text();
  if (schema != trace_schema) {
    fail("{}: schema is {}, this version reads {}; use the version of itspace that wrote it", where, in_quotes(schema),
         in_quotes(trace_schema));
  }
  Trace trace;
  trace.dim = json.at("dim").count();
  trace.rank = json.at("rank").count();
  trace.solver = json.at("solver").text();
  trace.route = json.at("route").route();
  const Reader alpha = json.at("alpha");
  if (!alpha.is_text()) {
    trace.alpha = alpha.number_or_null();
  } else if (alpha.text() != line_search_alpha) {
    alpha.refuse("a number, null or \"line-search\"");
  }
  trace.precision = json.at("precision").text();
  trace.status = json.at("status").status();
  if (json.has("reason")) {
    read(json.at("reason"), trace.reason);
  }
  trace.target_trace = json.at("target_trace").number_or_null();
  trace.passes_total = json.at("passes_total").count();
  for (const Reader& step : json.at("steps").elements()) {
    trace.steps.push_back(read_step(step, static_cast<Index>(trace.steps.size())));
  }
  const auto rows = static_cast<Index>(trace.steps.size());
  trace.best = rows > 0 ? rows - 1 : 0;  // a writer that does not name the best row returns the last one
  if (json.has("best")) {
    const Reader best = json.at("best");
    trace.best = best.count();
    if (trace.best >= rows && trace.best != 0) {
      best.refuse(fmt::format("a row of steps (there are {})", rows));
    }
  }
  if (json.has("factor_checksum")) {
    read(json.at("factor_checksum"), trace.factor_checksum);
  }
  return trace;
}

Trace parse(std::string_view text, std::string_view where) {
  try {
    const Json json = Json::parse(text);
    return read_trace(Reader(json, "", where), where);
  } catch (const Json::exception& error) {
    fail("{}: is not valid JSON: {}", where, error.what());
  }
}

}  // namespace

std::string to_json(const Trace& trace) {
  Json json;
  json["schema"] = trace_schema;
  json["dim"] = trace.dim;
  json["rank"] = trace.rank;
  json["solver"] = trace.solver;
  json["route"] = name(trace.route);
  json["alpha"] = trace.alpha ? as_json(*trace.alpha) : Json(line_search_alpha);
  json["precision"] = trace.precision;
  json["status"] = name(trace.status);
  json["reason"] = as_json(trace.reason);
  json["target_trace"] = as_json(trace.target_trace);
  json["passes_total"] = trace.passes_total;
  json["best"] = trace.best;
  json["factor_checksum"] = as_json(trace.factor_checksum);
  json["steps"] = Json::array();
  for (const Step& step : trace.steps) {
    json["steps"].push_back(to_json_object(step));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Trace trace_from_json(std::string_view text) {
  return parse(text, "trace");
}

Trace load_trace(const std::filesystem::path& path) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  return parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, in_quotes(path));
}

}  // namespace itspace::io
