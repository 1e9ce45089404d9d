// SPDX-License-Identifier: Apache-2.0
//
// Where the library was built without Arrow.
#include <gtest/gtest.h>

#include <itspace/row_files.hpp>

#include "fixtures.hpp"

namespace {

using namespace itspace;

TEST(ArrowRows, WithoutArrowTheMessageSaysHowToGetIt) {
  const fixtures::Folder folder;
  for (const std::string name : {"x.parquet", "x.pq", "x.arrow", "x.feather", "x.ipc"}) {
    const auto path = folder.write(name, "PAR1PAR1");
    EXPECT_TRUE(io::names_row_files(path.string()));
    fixtures::expect_refused([&] { io::RowFiles({path.string()}); },
                             {name, "built without Arrow", "ITSPACE_PYARROW", "docs/cmake.md", ".npy"});
  }
}

TEST(ArrowRows, Files) {
  GTEST_SKIP() << "Parquet and Arrow files: this itspace was built without Arrow";
}

}  // namespace
