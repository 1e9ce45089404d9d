// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include "text.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string>
#include <string_view>

namespace itspace::cli {

namespace {

std::optional<int> cuda_device_named(std::string_view text) {
  if (text == "cuda") return 0;
  constexpr std::string_view prefix = "cuda:";
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  int number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || rest != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

}  // namespace

CLI::Option* add_device(CLI::App& app, DeviceChoice& value) {
  const std::string flag = "--device";
  return app
      .add_option_function<std::string>(
          flag,
          [flag, &value](const std::string& text) {
            value.cuda = cuda_device_named(text);
            if (!value.cuda && text != "cpu")
              misuse(fmt::format("{} is '{}', which is no device", flag, text), "give cpu, cuda, or cuda:N");
          },
          "where to compute: cpu, cuda (the first GPU), or cuda:N")
      ->type_name("DEVICE")
      ->default_str("cpu");
}

}  // namespace itspace::cli
