// SPDX-License-Identifier: Apache-2.0
//
// Results as JSON and back. Every structure lists its fields once, for both directions. Numbers that are not finite
// are null in the file and NaN when read; the others are written with the digits that restore them exactly.
#include <cmath>
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>

#include <fmt/format.h>

#include "results.hpp"

namespace itspace::experiments {
namespace {

using Json = nlohmann::ordered_json;  // keys stay in the order of the structures

constexpr const char* results_schema = "itspace.experiment/1";
constexpr const char* instance_schema = "itspace.experiment-instance/1";

template <class T, class Plain>
concept MaybeConst = std::same_as<std::remove_const_t<T>, Plain>;

void fields(auto&& visit, MaybeConst<Machine> auto& machine) {
  visit("processor", machine.processor);
  visit("system", machine.system);
  visit("compiler", machine.compiler);
  visit("blas", machine.blas);
  visit("cores", machine.cores);
  visit("blas_threads", machine.blas_threads);
  visit("memory_in_gib", machine.memory_in_gib);
}

void fields(auto&& visit, MaybeConst<MethodInfo> auto& method) {
  visit("id", method.id);
  visit("title", method.title);
  visit("family", method.family);
  visit("objective", method.objective);
  visit("cost", method.cost);
  visit("settings", method.settings);
}

void fields(auto&& visit, MaybeConst<Row> auto& row) {
  visit("step", row.step);
  visit("passes", row.passes);
  visit("objective", row.objective);
  visit("gap", row.gap);
  visit("update_seconds", row.update_seconds);
  visit("projection_seconds", row.projection_seconds);
  visit("evaluation_seconds", row.evaluation_seconds);
}

void fields(auto&& visit, MaybeConst<Run> auto& run) {
  visit("method", run.method);
  visit("seed", run.seed);
  visit("preprocessing_seconds", run.preprocessing_seconds);
  visit("checks", run.checks);
  visit("settings", run.settings);
  visit("rows", run.rows);
}

void fields(auto&& visit, MaybeConst<InstanceInfo> auto& info) {
  visit("name", info.name);
  visit("title", info.title);
  visit("description", info.description);
  visit("outcome", info.outcome);
  visit("reason", info.reason);
  visit("dim", info.dim);
  visit("source_samples", info.source_samples);
  visit("target_samples", info.target_samples);
  visit("seconds", info.seconds);
}

void fields(auto&& visit, MaybeConst<AlignmentInstance> auto& instance) {
  visit("info", instance.info);
  visit("covariance_seconds", instance.covariance_seconds);
  visit("runs", instance.runs);
}

void fields(auto&& visit, MaybeConst<DriftRow> auto& row) {
  visit("method", row.method);
  visit("map", row.map);
  visit("budget", row.budget);
  visit("value", row.value);
  visit("adaptation_seconds", row.adaptation_seconds);
}

void fields(auto&& visit, MaybeConst<DriftCell> auto& cell) {
  visit("drift", cell.drift);
  visit("severity", cell.severity);
  visit("seed", cell.seed);
  visit("clean", cell.clean);
  visit("rows", cell.rows);
}

void fields(auto&& visit, MaybeConst<DriftInstance> auto& instance) {
  visit("info", instance.info);
  visit("metric", instance.metric);
  visit("classes", instance.classes);
  visit("closed_set", instance.closed_set);
  visit("chance", instance.chance);
  visit("cells", instance.cells);
}

void fields(auto&& visit, MaybeConst<Results> auto& results) {
  visit("experiment", results.experiment);
  visit("version", results.version);
  visit("command", results.command);
  visit("started", results.started);
  visit("seconds", results.seconds);
  visit("machine", results.machine);
  visit("rank", results.rank);
  visit("steps", results.steps);
  visit("seeds", results.seeds);
  visit("thresholds", results.thresholds);
  visit("budgets", results.budgets);
  visit("notes", results.notes);
  visit("methods", results.methods);
  visit("alignment", results.alignment);
  visit("covdrift", results.covdrift);
}

constexpr std::pair<Outcome, const char*> outcome_names[] = {
    {Outcome::done, "done"}, {Outcome::failed, "failed"}, {Outcome::skipped, "skipped"}};

template <class T>
concept Structure = std::is_class_v<T> && !std::same_as<T, std::string>;

Json encode(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}
template <class T>
requires std::same_as<T, bool> || std::same_as<T, Index> || std::same_as<T, std::uint64_t> ||
    std::same_as<T, std::string>
        Json encode(const T& value) {
  return value;
}
Json encode(Outcome outcome) {
  for (const auto& [value, name] : outcome_names) {
    if (value == outcome) return name;
  }
  throw std::logic_error("an outcome without a name");
}
template <Structure T>
Json encode(const T& structure);
template <class T>
Json encode(const std::vector<T>& list) {
  Json json = Json::array();
  for (const T& element : list) json.push_back(encode(element));
  return json;
}
template <Structure T>
Json encode(const T& structure) {
  Json json = Json::object();
  fields([&](const char* key, const auto& value) { json[key] = encode(value); }, structure);
  return json;
}

std::string written(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// A value and where it stands in the document, which is all that a message needs.
class Reader {
 public:
  Reader(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  Reader at(const std::string& key) const {
    if (!json_.is_object()) refuse("an object");
    const std::string child = path_.empty() ? key : path_ + "." + key;
    const auto found = json_.find(key);
    if (found == json_.end()) {
      throw std::runtime_error(
          fmt::format("results: {} is missing; the file is not whole, or another version wrote it", child));
    }
    return {*found, child};
  }

  void get(double& value) const {
    if (!json_.is_number() && !json_.is_null()) refuse("a number or null");
    value = json_.is_null() ? std::numeric_limits<double>::quiet_NaN() : json_.get<double>();
  }
  void get(Index& value) const {
    // Literals without a sign are read as unsigned.
    if (!json_.is_number_unsigned() ||
        json_.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<Index>::max())) {
      refuse("a non-negative integer");
    }
    value = json_.get<Index>();
  }
  void get(std::uint64_t& value) const {
    if (!json_.is_number_unsigned()) refuse("a non-negative integer");
    value = json_.get<std::uint64_t>();
  }
  void get(bool& value) const {
    if (!json_.is_boolean()) refuse("true or false");
    value = json_.get<bool>();
  }
  void get(std::string& value) const {
    if (!json_.is_string()) refuse("a string");
    value = json_.get<std::string>();
  }
  void get(Outcome& outcome) const {
    std::string name;
    get(name);
    for (const auto& [value, known] : outcome_names) {
      if (name == known) {
        outcome = value;
        return;
      }
    }
    refuse("done, failed or skipped");
  }
  template <class T>
  void get(std::vector<T>& list) const {
    if (!json_.is_array()) refuse("an array");
    list.clear();
    for (const Json& element : json_) {
      T value{};
      Reader(element, fmt::format("{}[{}]", path_, list.size())).get(value);
      list.push_back(std::move(value));
    }
  }
  template <Structure T>
  void get(T& structure) const {
    fields([&](const char* key, auto& value) { at(key).get(value); }, structure);
  }

  void require_schema(const std::string& wanted) const {
    std::string schema;
    at("schema").get(schema);
    if (schema != wanted) {
      throw std::runtime_error(fmt::format(
          "results: schema is {}, this version reads \"{}\"; use the version of itspace that wrote it, or run the "
          "experiment again",
          shown(Json(schema)), wanted));
    }
  }

 private:
  [[noreturn]] void refuse(const char* wanted) const {
    throw std::runtime_error(
        fmt::format("results: {} must be {}, is {}", path_.empty() ? "the document" : path_, wanted, shown(json_)));
  }

  static std::string shown(const Json& json) {
    if (json.is_structured()) return json.is_object() ? "an object" : "an array";
    const std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
    constexpr std::size_t longest = 60;
    return text.size() <= longest ? text : text.substr(0, longest) + "...";
  }

  const Json& json_;
  std::string path_;
};

Json parsed(const std::string& text) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    throw std::runtime_error(
        fmt::format("results: not valid JSON ({}); remove the file and run the experiment again", error.what()));
  }
}

template <class Instance>
std::string instance_to_json(const Instance& instance, const char* kind, const std::string& key) {
  Json json;
  json["schema"] = instance_schema;
  json["kind"] = kind;
  json["key"] = key;
  json["instance"] = encode(instance);
  return written(json);
}

template <class Instance>
bool instance_from_json(const std::string& text, const char* kind, const std::string& key, Instance& instance) {
  const Json json = parsed(text);
  const Reader document(json, "");
  document.require_schema(instance_schema);
  std::string its_kind, its_key;
  document.at("kind").get(its_kind);
  document.at("key").get(its_key);
  // A key that is not UTF-8 was written with replacements.
  if (its_kind != kind || Json(its_key).dump() != Json(key).dump(-1, ' ', false, Json::error_handler_t::replace)) {
    return false;
  }
  Instance read;
  document.at("instance").get(read);
  instance = std::move(read);
  return true;
}

}  // namespace

std::string to_json(const Results& results) {
  Json json;
  json["schema"] = results_schema;
  json.update(encode(results));
  return written(json);
}

Results results_from_json(const std::string& text) {
  const Json json = parsed(text);
  const Reader document(json, "");
  document.require_schema(results_schema);
  Results results;
  document.get(results);
  return results;
}

std::string to_json(const AlignmentInstance& instance, const std::string& key) {
  return instance_to_json(instance, "alignment", key);
}

std::string to_json(const DriftInstance& instance, const std::string& key) {
  return instance_to_json(instance, "covdrift", key);
}

bool from_json(const std::string& text, const std::string& key, AlignmentInstance& instance) {
  return instance_from_json(text, "alignment", key, instance);
}

bool from_json(const std::string& text, const std::string& key, DriftInstance& instance) {
  return instance_from_json(text, "covdrift", key, instance);
}

}  // namespace itspace::experiments
