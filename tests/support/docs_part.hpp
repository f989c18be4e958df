#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "support/process.hpp"

namespace gitops::test {

// Expects the part of a page between "<!-- NAME -->" and "<!-- end -->" to be `wanted`. When the
// environment has GITOPS_WRITE_DOCS, writes it there instead.
inline void expect_docs_part(const std::filesystem::path& file, const std::string& name,
                             const std::string& wanted) {
  std::string page = read_file(file);
  const std::string begin = "<!-- " + name + " -->\n";
  const auto from = page.find(begin);
  ASSERT_NE(from, std::string::npos);
  const auto start = from + begin.size();
  const auto end = page.find("<!-- end -->", start);
  ASSERT_NE(end, std::string::npos);
  if (std::getenv("GITOPS_WRITE_DOCS") != nullptr) {
    write_file(file, page.replace(start, end - start, wanted));
    return;
  }
  EXPECT_EQ(page.substr(start, end - start), wanted) << "run this test with GITOPS_WRITE_DOCS=1";
}

}  // namespace gitops::test
