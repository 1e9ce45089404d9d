// SPDX-License-Identifier: Apache-2.0
#include "module.hpp"

#include <itspace/threads.hpp>

#include <optional>

// For threadpoolctl, which calls a library's functions by their plain names.
extern "C" {
NB_EXPORT int itspace_get_threads() {
  return static_cast<int>(itspace::threads());
}
NB_EXPORT void itspace_set_threads(int count) {
  itspace::set_threads(count > 0 ? count : 1);
}
}

namespace itspace::python {
namespace {

// A with statement: from __enter__ to __exit__, in the thread that runs both.
class ThreadLimit {
 public:
  explicit ThreadLimit(Index count) : count_(count) { const ThreadScope checked(count); }
  void enter() { scope_.emplace(count_); }
  void exit() { scope_.reset(); }

 private:
  Index count_;
  std::optional<ThreadScope> scope_;
};

}  // namespace

void add_threads(nanobind::module_& module) {
  module.def("threads", &itspace::threads);
  module.def("set_threads", &itspace::set_threads, nanobind::arg("count"));
  nanobind::class_<ThreadLimit>(module, "ThreadLimit")
      .def(nanobind::init<Index>(), nanobind::arg("count"))
      .def("enter", &ThreadLimit::enter)
      .def("exit", &ThreadLimit::exit);
}

}  // namespace itspace::python
