#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/time.hpp"
#include "gitopsctl/redaction.hpp"

// The bundle of `gitopsctl diag`: named texts, and what could not be read. Pure.
namespace gitops::ctl {

// Limits of a bundle, in bytes before compression.
struct BundleLimits {
  std::size_t part = std::size_t{2} * 1024 * 1024;
  std::size_t all = std::size_t{64} * 1024 * 1024;
};

// A text that is to be part of the bundle, or the reason why it is not.
struct Part {
  std::string path;   // in the bundle: "pods/app-proxy-1/metrics.txt"
  std::string about;  // one line: "metrics of pod app-proxy-1"
  Result<std::string> text;
};

// Returns a text that is safe as one component of a path, at most 80 bytes.
std::string path_component(std::string_view name);
// Returns the end of a text from the beginning of a line on, at most `most` bytes.
std::string_view last_lines(std::string_view text, std::size_t most);

class Bundle {
 public:
  // `folder` is the one in which the archive holds everything.
  explicit Bundle(std::string folder, BundleLimits limits = {})
      : folder_(std::move(folder)), limits_(limits) {}

  void add(Part part) { parts_.push_back(std::move(part)); }
  // Adds what this run does not read at all, for example for want of an address.
  void leave_out(std::string about, std::string why);

  // Takes secrets out of all parts, cuts those that are too long, and returns the archive (ustar, gzip).
  // contents() tells the same afterwards as CONTENTS.txt in it.
  std::string archive(const Redactor& redactor, WallTime now);
  [[nodiscard]] const std::string& contents() const { return contents_; }
  // The number of parts that could not be read.
  [[nodiscard]] std::size_t not_known() const;

 private:
  struct File {
    std::string path;
    std::string text;
  };
  [[nodiscard]] std::string list(const std::vector<File>& files, const Redactor& redactor,
                                 WallTime now) const;

  struct LeftOut {
    std::string about;
    std::string why;
  };
  std::string folder_;
  BundleLimits limits_;
  std::vector<Part> parts_;
  std::vector<LeftOut> left_out_;
  std::string contents_;
};

}  // namespace gitops::ctl
