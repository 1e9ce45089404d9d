// SPDX-License-Identifier: Apache-2.0
#include "gnuplot.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include <fmt/format.h>

#include "table.hpp"

namespace itspace::experiments::report {
namespace {

namespace fs = std::filesystem;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "itspace-figure-XXXXXX").string();
    if (!mkdtemp(name.data())) {
      throw fs::filesystem_error("cannot make a temporary folder; set TMPDIR to one that can be written", name,
                                 std::error_code(errno, std::generic_category()));
    }
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  fs::path operator/(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The exit status, or -errno where the program could not be started.
int run(const std::string& program, const fs::path& script, const fs::path& complaints) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, complaints.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  std::string name = program, defaults = "-d", file = script.string();
  char* arguments[] = {name.data(), defaults.data(), file.data(), nullptr};
  pid_t child = 0;
  const int error = posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return -error;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -errno;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// Removes every stretch that begins with `from` and ends with `to`.
void remove_between(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t begin = text.find(from); begin != std::string::npos; begin = text.find(from, begin)) {
    const std::size_t end = text.find(to, begin + from.size());
    if (end == std::string::npos) return;
    text.erase(begin, end + to.size() - begin);
  }
}

std::string superscript(int exponent) {
  static const char* const digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "⁻" : "";
  for (const char c : std::to_string(std::abs(exponent))) text += digits[c - '0'];
  return text;
}

}  // namespace

Figure draw(const Drawing& drawing, const std::string& program) {
  try {
    const TemporaryFolder folder;
    const fs::path script = folder / "figure.gp", output = folder / "figure.svg", complaints = folder / "complaints";
    std::ofstream(script) << fmt::format(
        "set encoding utf8\nset terminal svg size {},{} dynamic font 'sans-serif,13' noenhanced background '#ffffff'\n"
        "set output {}\n{}",
        drawing.width, drawing.height, quoted(output.string()), drawing.commands);
    const int status = run(program, script, complaints);
    if (status == -ENOENT) {
      return {"", fmt::format("'{}' was not found. Install gnuplot (Debian, Ubuntu: apt install gnuplot-nox) and "
                              "write the report again.",
                              program)};
    }
    if (status < 0) return {"", fmt::format("'{}' could not be run: {}.", program, std::strerror(-status))};
    const std::string svg = content_of(output);
    if (status != 0 || svg.find("</svg>") == std::string::npos) {
      std::string complaint = content_of(complaints);
      complaint = complaint.substr(0, 300);
      std::replace(complaint.begin(), complaint.end(), '\n', ' ');
      return {"", fmt::format("'{}' failed with status {}: {}", program, status, complaint)};
    }
    return {svg, ""};
  } catch (const fs::filesystem_error& error) {
    return {"", error.what()};
  }
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') result += '\'';
    result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  return result + "'";
}

std::string data_block(const std::string& name, const std::vector<std::pair<double, double>>& points) {
  std::string text = "$" + name + " << END\n";
  for (const auto& [x, y] : points) {
    text += std::isfinite(x) && std::isfinite(y) ? fmt::format("{} {}\n", x, y) : std::string("\n");
  }
  return text + "END\n";
}

std::string decade_tics(double low, double high, int most) {
  const int first = static_cast<int>(std::ceil(std::log10(low) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log10(high) + 1e-9));
  const int stride = std::max(1, (last - first + most) / most);
  std::string text = "(";
  for (int exponent = last; exponent >= first; exponent -= stride) {
    const std::string label =
        exponent >= -2 && exponent <= 3 ? fmt::format("{:g}", std::pow(10.0, exponent)) : "10" + superscript(exponent);
    text += fmt::format("{}{} 1e{}", text.size() > 1 ? ", " : "", quoted(label), exponent);
  }
  return text + ")";
}

std::string inline_svg(const std::string& svg, const std::string& name, const std::string& label) {
  std::string text = svg.substr(std::min(svg.find("<svg"), svg.size()));
  const std::size_t box = text.find("viewBox=");
  const std::size_t end = text.find('>');
  if (box == std::string::npos || end == std::string::npos || box > end) return "";
  const std::string view = text.substr(box, text.find('"', box + 9) + 1 - box);
  text = fmt::format("<svg {} role=\"img\" aria-label=\"{}\">", view, escaped(label)) + text.substr(end + 1);
  remove_between(text, "<title>", "</title>");
  remove_between(text, "<desc>", "</desc>");
  remove_between(text, "<rect x=\"0\" y=\"0\"", "/>");  // the background
  remove_between(text, "<filter", "</filter>");
  for (const char* black : {"rgb(  0,   0,   0)", "rgb(0,0,0)"}) replace_all(text, black, "black");
  for (const char quote : {'"', '\''}) {
    const std::string q(1, quote);
    replace_all(text, "id=" + q, "id=" + q + name + "-");
    replace_all(text, "href=" + q + "#", "href=" + q + "#" + name + "-");
    replace_all(text, " color=" + q + "black" + q, "");
    replace_all(text, "stroke=" + q + "black" + q, "stroke=" + q + "currentColor" + q);
    replace_all(text, "fill=" + q + "black" + q, "fill=" + q + "currentColor" + q);
  }
  return text;
}

}  // namespace itspace::experiments::report
