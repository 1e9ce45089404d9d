// SPDX-License-Identifier: Apache-2.0
//
// The trace as JSON: the schema, exact numbers, and messages that name the field.
#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <itspace/io.hpp>

#include "fixtures.hpp"

namespace {

using namespace itspace;
using fixtures::expect_refused;

Trace example() {
  Trace trace;
  trace.dim = 300;
  trace.rank = 4;
  trace.route = Route::gram;
  trace.alpha = 1.0 / 3.0;
  trace.precision = "float32";
  trace.status = Status::converged;
  trace.target_trace = 0.1 + 0.2;
  trace.passes_total = 3;
  trace.best = 1;
  trace.steps.resize(2);
  Step& step = trace.steps[1];
  step.index = 1;
  step.objective = 1e-300;
  step.certificate_gap = -0.0;
  step.feasibility = std::nextafter(1.0, 2.0);
  step.orthogonality = 5e-324;
  step.gram_rank = 4;
  step.route = Route::qr;
  step.alpha = 1.7976931348623157e308;
  step.step_squared = 123456789.123456789;
  step.promised_descent = -1e22;
  step.actual_descent = 2;
  step.objective_bound = std::numeric_limits<double>::infinity();
  step.certified = false;
  step.passes = 1;
  step.seconds = 0.25;
  return trace;
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

void expect_same(const Step& a, const Step& b) {
  EXPECT_EQ(a.index, b.index);
  EXPECT_TRUE(same(a.objective, b.objective));
  EXPECT_TRUE(same(a.certificate_gap, b.certificate_gap));
  EXPECT_TRUE(same(a.feasibility, b.feasibility));
  EXPECT_TRUE(same(a.orthogonality, b.orthogonality));
  EXPECT_EQ(a.gram_rank, b.gram_rank);
  EXPECT_EQ(a.route, b.route);
  EXPECT_TRUE(same(a.alpha, b.alpha));
  EXPECT_TRUE(same(a.step_squared, b.step_squared));
  EXPECT_TRUE(same(a.promised_descent, b.promised_descent));
  EXPECT_TRUE(same(a.actual_descent, b.actual_descent));
  EXPECT_EQ(a.certified, b.certified);
  EXPECT_EQ(a.passes, b.passes);
  EXPECT_TRUE(same(a.seconds, b.seconds));
}

TEST(TraceJson, ComesBackExactly) {
  const Trace trace = example();
  const Trace back = io::trace_from_json(io::to_json(trace));
  EXPECT_EQ(back.dim, trace.dim);
  EXPECT_EQ(back.rank, trace.rank);
  EXPECT_EQ(back.solver, trace.solver);
  EXPECT_EQ(back.route, trace.route);
  EXPECT_EQ(back.alpha, trace.alpha);
  EXPECT_EQ(back.precision, trace.precision);
  EXPECT_EQ(back.status, trace.status);
  EXPECT_EQ(back.target_trace, trace.target_trace);
  EXPECT_EQ(back.passes_total, trace.passes_total);
  EXPECT_EQ(back.best, trace.best);
  ASSERT_EQ(back.steps.size(), 2U);
  expect_same(back.steps[0], trace.steps[0]);
  expect_same(back.steps[1], trace.steps[1]);
  EXPECT_TRUE(std::isnan(back.steps[1].objective_bound));  // infinity is null, and null is NaN
  EXPECT_EQ(io::to_json(back), io::to_json(trace));
}

TEST(TraceJson, FollowsTheSchema) {
  Trace trace = example();
  trace.alpha.reset();
  const std::string text = io::to_json(trace);
  std::size_t at = 0;
  for (const char* part : {"\"schema\": \"itspace.trace/1\"",
                           "\"dim\": 300",
                           "\"rank\": 4",
                           "\"solver\": \"paper\"",
                           "\"route\": \"gram\"",
                           "\"alpha\": \"line-search\"",
                           "\"precision\": \"float32\"",
                           "\"status\": \"converged\"",
                           "\"target_trace\"",
                           "\"passes_total\": 3",
                           "\"best\": 1",
                           "\"steps\": [",
                           "\"index\": 0",
                           "\"objective\": null",
                           "\"certificate_gap\": null",
                           "\"feasibility\": null",
                           "\"orthogonality\": null",
                           "\"gram_rank\": 0",
                           "\"route\": null",
                           "\"alpha\": null",
                           "\"step_squared\": null",
                           "\"promised_descent\": null",
                           "\"actual_descent\": null",
                           "\"objective_bound\": null",
                           "\"certified\": null",
                           "\"passes\": 0",
                           "\"seconds\": 0.0",
                           "\"index\": 1",
                           "\"certified\": false"}) {
    const std::size_t found = text.find(part, at);
    ASSERT_NE(found, std::string::npos) << part << " in " << text;
    at = found;
  }
  EXPECT_EQ(io::trace_from_json(text).alpha, std::nullopt);
  trace.alpha = not_a_number;
  const auto back = io::trace_from_json(io::to_json(trace)).alpha;
  ASSERT_TRUE(back.has_value());
  EXPECT_TRUE(std::isnan(*back));
}

TEST(TraceJson, DefaultsAndFilesComeBack) {
  const fixtures::Folder folder;
  io::save_text(folder / "t.json", io::to_json(Trace()));
  const Trace back = io::load_trace(folder / "t.json");
  EXPECT_TRUE(back.steps.empty());
  EXPECT_TRUE(std::isnan(back.target_trace));
  expect_refused([&] { io::load_trace(folder.write("u.json", "{\"schema\": 1}")); }, {"u.json", "schema", "string"});
}

TEST(TraceJson, DoesNotDependOnTheLocale) {
  const std::string expected = io::to_json(example());
  const char* chosen = nullptr;
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8", "de_DE"}) {
    chosen = chosen == nullptr ? std::setlocale(LC_ALL, name) : chosen;
  }
  if (chosen == nullptr) {
    GTEST_SKIP() << "no locale with a decimal comma is installed";
  }
  const std::string text = io::to_json(example());
  const double objective = io::trace_from_json(text).steps[1].step_squared;
  std::setlocale(LC_ALL, "C");
  EXPECT_EQ(text, expected);
  EXPECT_EQ(objective, 123456789.123456789);
}

std::string with(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.rfind(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(TraceJson, ForeignSchemasAreRefusedByName) {
  const std::string text = io::to_json(example());
  expect_refused([&] { io::trace_from_json(with(text, "itspace.trace/1", "itspace.trace/2")); },
                 {"'itspace.trace/2'", "'itspace.trace/1'"});
  expect_refused([&] { io::trace_from_json(with(text, "itspace.trace/1", "other")); }, {"'other'"});
  expect_refused([&] { io::trace_from_json("{}"); }, {"schema", "missing"});
  expect_refused([&] { io::trace_from_json("[1]"); }, {"must be an object"});
  expect_refused([&] { io::trace_from_json("3"); }, {"must be an object"});
  expect_refused([&] { io::trace_from_json(""); }, {"not valid JSON"});
  expect_refused([&] { io::trace_from_json("{\"schema\": 1e999}"); }, {"not valid JSON"});
  expect_refused([&] { io::trace_from_json(std::string(100000, '[')); }, {"not valid JSON"});
}

TEST(TraceJson, WrongFieldsAreNamedByTheirPath) {
  const std::string text = io::to_json(example());
  struct Case {
    const char* from;
    const char* to;
    const char* path;
    const char* wanted;
  };
  for (const auto& [from, to, path, wanted] : {
           Case{"\"dim\": 300", "\"dim\": -300", "dim", "non-negative integer, is -300"},
           Case{"\"dim\": 300", "\"dim\": 300.5", "dim", "non-negative integer"},
           Case{"\"dim\": 300", "\"dim\": 18446744073709551615", "dim", "non-negative integer"},
           Case{"\"rank\": 4", "\"rank\": \"4\"", "rank", "non-negative integer, is \"4\""},
           Case{"\"dim\": 300,", "", "dim", "missing"},
           Case{"\"solver\": \"paper\"", "\"solver\": null", "solver", "string, is null"},
           Case{"\"route\": \"gram\"", "\"route\": \"scenic\"", "route", "is \"scenic\""},
           Case{"\"status\": \"converged\"", "\"status\": \"fine\"", "status", "is \"fine\""},
           Case{"\"alpha\": 0.333", "\"alpha\": \"a\", \"x\": 0.333", "alpha", "line-search"},
           Case{"\"best\": 1", "\"best\": 2", "best", "there are 2"},
           Case{"\"steps\": [", "\"steps\": 3, \"x\": [", "steps", "an array"},
           Case{"\"objective\": 1e-300", "\"objective\": \"x\"", "steps[1].objective", "number or null, is \"x\""},
           Case{"\"objective\": 1e-300,", "", "steps[1].objective", "missing"},
           Case{"\"gram_rank\": 4", "\"gram_rank\": null", "steps[1].gram_rank", "non-negative integer"},
           Case{"\"route\": \"qr\"", "\"route\": 3", "steps[1].route", "string"},
           Case{"\"certified\": false", "\"certified\": 0", "steps[1].certified", "true, false or null"},
           Case{"\"passes\": 1", "\"passes\": -1", "steps[1].passes", "non-negative integer"},
           Case{"\"index\": 1", "\"index\": {}", "steps[1].index", "is an object"},
       }) {
    expect_refused([&] { io::trace_from_json(with(text, from, to)); }, {path, wanted});
  }
}

TEST(TraceJson, UnknownKeysAreIgnoredAndOurExtrasMayBeAbsent) {
  std::string text = io::to_json(example());
  text = with(text, "\"dim\": 300", "\"dim\": 300, \"remark\": [1, {\"a\": null}]");
  text = with(text, "\"best\": 1,", "");
  text = with(text, "\"index\": 1,", "\"new\": 1,");
  text = with(text, "\"route\": \"qr\",", "");
  text = with(text, "\"objective_bound\": null,", "");
  const Trace back = io::trace_from_json(text);
  EXPECT_EQ(back.best, 1);
  EXPECT_EQ(back.steps[1].index, 1);
  EXPECT_EQ(back.steps[1].route, std::nullopt);
}

}  // namespace
