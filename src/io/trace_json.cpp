// SPDX-License-Identifier: Apache-2.0
//
// The trace as JSON and back. Missing numbers are NaN in memory and null in the file; numbers are written with the
// digits that restore them exactly, whatever the locale.
#include <cmath>
#include <itspace/io.hpp>
#include <limits>
#include <nlohmann/json.hpp>

#include "error.hpp"
#include "mapped_file.hpp"

namespace itspace::io {
namespace {

using Json = nlohmann::ordered_json;  // keys stay in the order of the schema

constexpr std::string_view schema_name = "itspace.trace/1";
constexpr std::string_view line_search = "line-search";

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json to_json_object(const Step& step) {
  Json json;
  json["index"] = step.index;
  json["objective"] = number(step.objective);
  json["resolution"] = number(step.resolution);
  json["certificate_gap"] = number(step.certificate_gap);
  json["feasibility"] = number(step.feasibility);
  json["orthogonality"] = number(step.orthogonality);
  json["gram_rank"] = step.gram_rank;
  json["route"] = step.route ? Json(name(*step.route)) : Json(nullptr);
  json["alpha"] = number(step.alpha);
  json["step_squared"] = number(step.step_squared);
  json["promised_descent"] = number(step.promised_descent);
  json["actual_descent"] = number(step.actual_descent);
  json["objective_bound"] = number(step.objective_bound);
  json["allowance"] = number(step.allowance);
  json["certified"] = step.certified ? Json(*step.certified) : Json(nullptr);
  json["target_version"] = step.target_version;
  json["passes"] = step.passes;
  json["seconds"] = number(step.seconds);
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
      fail("{}: {} is missing; pass a trace of schema {}", where_, child(key), schema_name);
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

Step read_step(const Reader& json, Index row) {
  Step step;
  step.index = json.has("index") ? json.at("index").count() : row;
  step.objective = json.at("objective").number_or_null();
  step.resolution = json.has("resolution") ? json.at("resolution").number_or_null() : not_a_number;
  step.certificate_gap = json.at("certificate_gap").number_or_null();
  step.feasibility = json.at("feasibility").number_or_null();
  step.orthogonality = json.at("orthogonality").number_or_null();
  step.gram_rank = json.at("gram_rank").count();
  if (json.has("route") && !json.at("route").is_null()) {
    step.route = json.at("route").route();
  }
  step.alpha = json.has("alpha") ? json.at("alpha").number_or_null() : not_a_number;
  step.step_squared = json.at("step_squared").number_or_null();
  step.promised_descent = json.at("promised_descent").number_or_null();
  step.actual_descent = json.at("actual_descent").number_or_null();
  step.objective_bound = json.has("objective_bound") ? json.at("objective_bound").number_or_null() : not_a_number;
  step.allowance = json.has("allowance") ? json.at("allowance").number_or_null() : not_a_number;
  step.certified = json.at("certified").truth_or_null();
  if (json.has("target_version")) {
    step.target_version = static_cast<std::uint64_t>(json.at("target_version").count());
  }
  step.passes = json.at("passes").count();
  step.seconds = json.at("seconds").number_or_null();
  return step;
}

Trace read_trace(const Reader& json, std::string_view where) {
  const std::string schema = json.at("schema").text();
  if (schema != schema_name) {
    fail("{}: schema is {}, this version reads {}; use the version of itspace that wrote it", where, in_quotes(schema),
         in_quotes(schema_name));
  }
  Trace trace;
  trace.dim = json.at("dim").count();
  trace.rank = json.at("rank").count();
  trace.solver = json.at("solver").text();
  trace.route = json.at("route").route();
  const Reader alpha = json.at("alpha");
  if (!alpha.is_text()) {
    trace.alpha = alpha.number_or_null();
  } else if (alpha.text() != line_search) {
    alpha.refuse("a number, null or \"line-search\"");
  }
  trace.precision = json.at("precision").text();
  trace.status = json.at("status").status();
  if (json.has("reason") && !json.at("reason").is_null()) {
    trace.reason = json.at("reason").text();
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
    trace.factor_checksum = json.at("factor_checksum").text();
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
  json["schema"] = schema_name;
  json["dim"] = trace.dim;
  json["rank"] = trace.rank;
  json["solver"] = trace.solver;
  json["route"] = name(trace.route);
  json["alpha"] = trace.alpha ? number(*trace.alpha) : Json(line_search);
  json["precision"] = trace.precision;
  json["status"] = name(trace.status);
  json["reason"] = trace.reason.empty() ? Json(nullptr) : Json(trace.reason);
  json["target_trace"] = number(trace.target_trace);
  json["passes_total"] = trace.passes_total;
  json["best"] = trace.best;
  if (!trace.factor_checksum.empty()) {
    json["factor_checksum"] = trace.factor_checksum;
  }
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
