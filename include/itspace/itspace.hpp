// SPDX-License-Identifier: Apache-2.0
//
// Everything of the library but the files (io.hpp, which is a library of its own).
#pragma once

#include <itspace/align.hpp>
#include <itspace/barycenter.hpp>
#include <itspace/batch.hpp>
#include <itspace/checkpoint.hpp>
#include <itspace/covariance.hpp>
#include <itspace/covariance_bands.hpp>
#include <itspace/distance.hpp>
#include <itspace/drift_alarm.hpp>
#include <itspace/evaluate.hpp>
#include <itspace/follow_gate.hpp>
#include <itspace/followed_shift.hpp>
#include <itspace/gate.hpp>
#include <itspace/gradient.hpp>
#include <itspace/moments.hpp>
#include <itspace/online.hpp>
#include <itspace/online_target.hpp>
#include <itspace/random.hpp>
#include <itspace/rank.hpp>
#include <itspace/row_source.hpp>
#include <itspace/shift_noise.hpp>
#include <itspace/shift_test.hpp>
#include <itspace/shrinkage.hpp>
#include <itspace/start.hpp>
#include <itspace/streamed.hpp>
#include <itspace/target.hpp>
#include <itspace/targets.hpp>
#include <itspace/threads.hpp>
#include <itspace/trace.hpp>
#include <itspace/transport_map.hpp>
#include <itspace/verify.hpp>
#include <itspace/version.hpp>
