#include "gitopsctl/bundle.hpp"

#include <algorithm>
#include <utility>

#include "common/cli/table.hpp"
#include "common/core/encoding.hpp"
#include "common/core/process.hpp"
#include "common/core/text.hpp"
#include "common/http/gzip.hpp"
#include "gitopsctl/ustar.hpp"

namespace gitops::ctl {

namespace {

constexpr std::size_t kMaxComponent = 80;
constexpr std::size_t kMaxReason = 300;
constexpr int kCompression = 6;

bool is_safe(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '_' || c == '.';
}

}  // namespace

std::string path_component(std::string_view name) {
  std::string out;
  for (const char c : name) out += is_safe(c) ? c : '_';
  if (out.empty() || out.front() == '.') out.insert(0, 1, '_');
  if (out.size() <= kMaxComponent) return out;
  const std::string mark = "-" + std::to_string(fnv1a_32(name));
  return out.substr(0, kMaxComponent - mark.size()) + mark;
}

std::string_view last_lines(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  const auto newline = text.find('\n', text.size() - most - 1);
  return newline == std::string_view::npos ? std::string_view() : text.substr(newline + 1);
}

void Bundle::leave_out(std::string about, std::string why) {
  left_out_.push_back({.about = std::move(about), .why = std::move(why)});
}

std::size_t Bundle::not_known() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(parts_, [](const Part& part) { return !part.text.has_value(); }));
}

std::string Bundle::list(const std::vector<File>& files, const Redactor& redactor,
                         WallTime now) const {
  std::string out = "gitopsctl " + std::string(version()) + ", " + format_rfc3339(now) +
                    "\nSecrets are taken out of everything below. Look through it before you pass "
                    "it on.\n\n";
  cli::Table table;
  for (const File& file : files) {
    const auto part = std::ranges::find(parts_, file.path, &Part::path);
    table.add({{file.path}, {byte_count(file.text.size())}, {cli::printable(part->about)}});
  }
  out += table.text(0, false);
  const auto reason = [&](const std::string& text) {
    return cli::printable(shortened(redactor.redacted(text), kMaxReason));
  };
  if (not_known() > 0) out += "\nNot known\n";
  for (const Part& part : parts_) {
    if (!part.text) {
      out += "  " + cli::printable(part.about) + ": " + reason(part.text.error().message) + '\n';
    }
  }
  if (!left_out_.empty()) out += "\nLeft out\n";
  for (const LeftOut& one : left_out_) {
    out += "  " + cli::printable(one.about) + ": " + reason(one.why) + '\n';
  }
  return out;
}

std::string Bundle::archive(const Redactor& redactor, WallTime now) {
  std::vector<File> files;
  std::size_t total = 0;
  for (Part& part : parts_) {
    if (!part.text) continue;
    auto text = redactor.redacted(*part.text);
    if (text.size() > limits_.part) {
      text = "[only the last " + byte_count(limits_.part) + " of " + byte_count(text.size()) +
             "]\n" + std::string(last_lines(text, limits_.part));
    }
    if (total + text.size() > limits_.all) {
      part.text = fail(ErrorCode::too_large,
                       "the bundle has its " + byte_count(limits_.all) + " without it");
      continue;
    }
    total += text.size();
    files.push_back({.path = part.path, .text = std::move(text)});
  }
  contents_ = list(files, redactor, now);
  std::string tar;
  tar.reserve(total + contents_.size() + (files.size() + 4) * 1024);
  append_file(tar, folder_ + "/CONTENTS.txt", contents_, now);
  for (const File& file : files) append_file(tar, folder_ + '/' + file.path, file.text, now);
  append_end(tar);
  return http::gzip_compress(tar, kCompression);
}

}  // namespace gitops::ctl
