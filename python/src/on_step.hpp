// SPDX-License-Identifier: Apache-2.0
//
// What a run calls after each step: the caller's function, or the look for Ctrl-C.
#pragma once

#include <itspace/align.hpp>

#include "arrays.hpp"
#include "interrupt.hpp"
#include "trace.hpp"

namespace itspace::python {

// @pre `callback` and `signals` outlive the run.
template <Storage Scalar>
OnStep<Scalar> on_step_calling(const nb::object& callback, SignalCheck& signals) {
  if (callback.is_none())
    return [&signals](const Step&, const ConstBlockView<Scalar>&) {
      signals.poll();
      return StepAction::proceed;
    };
  return [callback = callback.ptr()](const Step& step, const ConstBlockView<Scalar>& factor) {
    const nb::gil_scoped_acquire lock;
    SignalCheck::raise();
    // A copy: the view is gone after this call, and Python may keep what it is given.
    const nb::object answer = nb::handle(callback)(step_dict(step), to_numpy<Scalar>(Block<Scalar>(factor)));
    const int stop = PyObject_IsTrue(answer.ptr());
    if (stop < 0) throw nb::python_error();
    return stop != 0 ? StepAction::stop : StepAction::proceed;
  };
}

}  // namespace itspace::python
