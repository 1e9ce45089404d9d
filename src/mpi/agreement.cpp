// SPDX-License-Identifier: Apache-2.0
//
// What all ranks come to know: words of rank 0, the wish of one, the failure of one.
#include "core/require.hpp"
#include "mpi/state.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <vector>

namespace itspace::mpi {

std::string Communicator::broadcast(std::string words) const {
  State& state = *state_;
  if (state.size == 1) return words;
  double length = state.rank == 0 ? static_cast<double>(words.size()) : 0;
  sum({&length, 1});
  words.resize(static_cast<std::size_t>(length));
  State::Messages messages(state.size);
  if (state.rank == 0) {
    std::fill(messages.to_size.begin() + 1, messages.to_size.end(), words.size());
  } else {
    messages.from_size[0] = words.size();
  }
  auto* bytes = reinterpret_cast<std::byte*>(words.data());
  state.exchange(messages, bytes, bytes);
  return words;
}

bool Communicator::any(bool here) const {
  double count = here ? 1 : 0;
  sum({&count, 1});
  return count > 0;
}

void Communicator::agree(const std::function<void()>& work) const {
  State& state = *state_;
  constexpr double fine = 0, misuse = 1, failure = 2;
  double verdict = fine;
  std::string words;
  try {
    work();
  } catch (const Lost&) {
    throw;
  } catch (const std::invalid_argument& error) {
    verdict = misuse;
    words = error.what();
  } catch (const std::bad_alloc&) {
    verdict = failure;
    words = "out of memory";
  } catch (const std::exception& error) {
    verdict = failure;
    words = error.what();
  }
  const auto size = state.slot(state.size);
  std::vector<double> verdicts(2 * size, 0.0);  // of each rank, and the length of what it has to say
  verdicts[state.slot(state.rank)] = verdict;
  verdicts[size + state.slot(state.rank)] = static_cast<double>(words.size());
  sum(verdicts);
  const auto first = std::find_if(verdicts.begin(), verdicts.begin() + static_cast<std::ptrdiff_t>(size),
                                  [](double found) { return found != fine; });
  if (first == verdicts.begin() + static_cast<std::ptrdiff_t>(size)) return;
  const auto speaker = static_cast<int>(first - verdicts.begin());
  // The words of the first that has some.
  std::string said(static_cast<std::size_t>(verdicts[size + state.slot(speaker)]), ' ');
  State::Messages messages(state.size);
  if (state.rank == speaker) {
    said = words;
    std::fill(messages.to_size.begin(), messages.to_size.end(), said.size());
  } else {
    messages.from_size[state.slot(speaker)] = said.size();
  }
  auto* bytes = reinterpret_cast<std::byte*>(said.data());
  state.exchange(messages, bytes, bytes);
  if (any(verdict == fine || words != said)) said = text("on rank ", speaker, " of ", state.size, ": ", said);
  if (*first == misuse) throw AgreedMisuse(said);
  throw AgreedFailure(said);
}

}  // namespace itspace::mpi
