// SPDX-License-Identifier: Apache-2.0
//
// Building .npy and zip files by hand.
#include "fixtures.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace fixtures {

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "itspace-io-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("no temporary folder");
  }
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path Folder::write(std::string_view name, std::string_view bytes) const {
  const auto path = path_ / name;
  std::filesystem::remove(path);  // truncating in place makes ext4 flush, and thousands of fixtures slow
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

std::vector<std::string> Folder::names() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string little(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) {
    out += static_cast<char>(value >> (8 * i) & 0xff);
  }
  return out;
}

std::string npy(std::string_view dictionary, std::string_view values, int major, bool pad) {
  std::string text(dictionary);
  const std::size_t prelude = major == 1 ? 10 : 12;
  while (pad && (prelude + text.size() + 1) % 64 != 0) {
    text += ' ';
  }
  if (pad) {
    text += '\n';
  }
  std::string out = "\x93NUMPY";
  out += static_cast<char>(major);
  out += '\0';
  out += little(text.size(), major == 1 ? 2 : 4);
  return out + text + std::string(values);
}

std::string npy_of(std::string_view descr, std::string_view shape, std::string_view values, bool fortran_order) {
  std::string text = "{'descr': '";
  text += descr;
  text += "', 'fortran_order': ";
  text += fortran_order ? "True" : "False";
  text += ", 'shape': ";
  text += shape;
  return npy(text + ", }", values);
}

std::string npy_f8(std::string_view shape, std::initializer_list<double> numbers) {
  std::string values;
  for (const double number : numbers) {
    values += raw(number, false);
  }
  return npy_of("<f8", shape, values);
}

std::string deflate(std::string_view content) {
  z_stream z = {};
  deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&z, content.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  z.avail_in = static_cast<uInt>(content.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  ::deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

std::string zip(const std::vector<Member>& members, bool zip64_end, std::string_view comment) {
  std::string out;
  std::string directory;
  for (const Member& member : members) {
    const std::uint64_t offset =
        member.claimed_offset < 0 ? out.size() : static_cast<std::uint64_t>(member.claimed_offset);
    const std::string data = member.deflated ? deflate(member.content) : member.content;
    const int method = member.method >= 0 ? member.method : (member.deflated ? 8 : 0);
    const std::uint64_t crc =
        member.claimed_crc >= 0
            ? static_cast<std::uint64_t>(member.claimed_crc)
            : crc32_z(0, reinterpret_cast<const Bytef*>(member.content.data()), member.content.size());
    const std::uint64_t size =
        member.claimed_size >= 0 ? static_cast<std::uint64_t>(member.claimed_size) : member.content.size();
    const int flags = member.flags | (member.descriptor ? 8 : 0);
    const std::string start = little(45, 2) + little(static_cast<std::uint64_t>(flags), 2) +
                              little(static_cast<std::uint64_t>(method), 2) + little(0x00210000, 4);
    const std::string saturated(4, '\xff');
    const std::string sizes64 = little(size, 8) + little(data.size(), 8);

    out += "PK\x03\x04" + start;
    if (member.descriptor) {
      out += std::string(12, '\0') + little(member.name.size(), 2) + little(0, 2) + member.name;
    } else if (member.zip64) {
      out += little(crc, 4) + saturated + saturated + little(member.name.size(), 2) + little(20, 2) + member.name +
             little(1, 2) + little(16, 2) + sizes64;
    } else {
      out += little(crc, 4) + little(data.size(), 4) + little(size, 4) + little(member.name.size(), 2) + little(0, 2) +
             member.name;
    }
    out += data;
    if (member.descriptor) {
      out += "PK\x07\x08" + little(crc, 4) + little(data.size(), 4) + little(size, 4);
    }

    // An unknown extra field stands before the zip64 one, to be stepped over.
    const std::string extra = member.zip64 ? little(0x5455, 2) + little(1, 2) + "x" + little(1, 2) + little(24, 2) +
                                                 sizes64 + little(offset, 8)
                                           : "";
    directory += "PK\x01\x02" + little(45, 2) + start + little(crc, 4) +
                 (member.zip64 ? saturated + saturated : little(data.size(), 4) + little(size, 4)) +
                 little(member.name.size(), 2) + little(extra.size(), 2) + little(0, 2) + little(0, 2) + little(0, 2) +
                 little(0, 4) + (member.zip64 ? saturated : little(offset, 4)) + member.name + extra;
  }
  const std::uint64_t begin = out.size();
  out += directory;
  if (zip64_end) {
    const std::uint64_t end64 = out.size();
    out += "PK\x06\x06" + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 4) + little(0, 4) +
           little(members.size(), 8) + little(members.size(), 8) + little(directory.size(), 8) + little(begin, 8);
    out += "PK\x06\x07" + little(0, 4) + little(end64, 8) + little(1, 4);
    out += "PK\x05\x06" + little(0, 4) + std::string(12, '\xff');
  } else {
    out += "PK\x05\x06" + little(0, 4) + little(members.size(), 2) + little(members.size(), 2) +
           little(directory.size(), 4) + little(begin, 4);
  }
  return out + little(comment.size(), 2) + std::string(comment);
}

void expect_refused(const std::function<void()>& action, std::initializer_list<std::string_view> parts) {
  try {
    action();
  } catch (const std::runtime_error& error) {
    const std::string_view message = error.what();
    for (const std::string_view part : parts) {
      EXPECT_NE(message.find(part), std::string_view::npos) << "no \"" << part << "\" in: " << message;
    }
    return;
  }
  ADD_FAILURE() << "nothing was thrown";
}

}  // namespace fixtures
