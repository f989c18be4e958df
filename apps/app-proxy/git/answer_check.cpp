#include "app-proxy/git/answer_check.hpp"

#include <algorithm>

#include "app-proxy/git/git_url.hpp"
#include "common/core/encoding.hpp"
#include "common/core/text.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kLength = 4;
constexpr std::size_t kObjectId = 40;
constexpr std::size_t kMaxProgress = 1024UL * 1024;
constexpr std::string_view kHead = "HEAD";
constexpr std::string_view kBranches = "refs/heads/";
constexpr std::string_view kTags = "refs/tags/";
// Name in place of a branch in the list of a repository without branches.
constexpr std::string_view kNone = "capabilities^{}";
// Largest line of a server's texts for people.
constexpr std::size_t kMaxLine = 1024;
constexpr std::size_t kMaxWords = 2048;

// Bands of a side band (gitprotocol-pack(5)).
constexpr char kData = 1;
constexpr char kProgress = 2;
constexpr char kError = 3;

std::unexpected<Error> refuse(std::string_view why) {
  return fail(ErrorCode::protocol, "the server's answer " + std::string(why));
}

std::unexpected<Error> reported(std::string_view text, std::string_view words = {}) {
  std::string message = "the server reports: " + std::string(text);
  if (!words.empty()) message += " (" + std::string(words) + ")";
  return fail(ErrorCode::protocol, std::move(message));
}

// Error for valid forms of the protocol that libgit2 cannot read.
std::unexpected<Error> unsupported(std::string_view what) {
  return fail(ErrorCode::unsupported, std::string(what) + "; that is not supported");
}

void add_packet(std::string& out, std::string_view payload) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const std::size_t size = payload.size() + kLength;
  for (const unsigned shift : {12U, 8U, 4U, 0U}) out += kDigits[(size >> shift) & 15U];
  out += payload;
}

std::string_view without_newline(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  return line;
}

// Returns the value of a capability; empty when there is none.
std::string_view capability(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const auto word = text.substr(0, text.find(' '));
    if (word.starts_with(name)) return word.substr(name.size());
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return {};
}

// Returns the lines of a response, up to the first invalid packet.
std::vector<std::string> lines_of(std::string_view bytes) {
  std::vector<std::string> lines;
  Packets packets;
  while (true) {
    const auto event = packets.next(bytes);
    if (event && *event == Packets::Event::flush) continue;
    if (!event || *event != Packets::Event::packet) return lines;
    lines.emplace_back(without_newline(packets.payload()));
  }
}

}  // namespace

Result<Packets::Event> Packets::next(std::string_view& bytes) {
  if (missing_ == 0) {
    payload_.clear();
    while (length_.size() < kLength) {
      if (bytes.empty()) return Event::more;
      length_ += bytes.front();
      bytes.remove_prefix(1);
    }
    if (length_ == "PACK") {
      length_.clear();
      return Event::pack;
    }
    std::size_t size = 0;
    for (const char c : length_) {
      const int digit = hex_value(c);
      if (digit < 0) return refuse("has a malformed packet");
      size = size * 16 + static_cast<std::size_t>(digit);
    }
    length_.clear();
    if (size == 0) return Event::flush;
    if (size <= kLength) return refuse("has an empty packet");
    missing_ = size - kLength;
  }
  const auto part = bytes.substr(0, missing_);
  payload_ += part;
  bytes.remove_prefix(part.size());
  missing_ -= part.size();
  return missing_ == 0 ? Event::packet : Event::more;
}

ReferenceList::ReferenceList(std::string service, const std::vector<std::string>& branches)
    : service_(std::move(service)), missing_{std::string(kHead)} {
  for (const auto& branch : branches) {
    missing_.insert(branch.starts_with(kTags) ? branch : std::string(kBranches) + branch);
  }
}

Result<void> ReferenceList::feed(std::string_view bytes, std::string& out) {
  while (step_ != Step::end) {
    auto event = packets_.next(bytes);
    if (!event) return std::unexpected(std::move(event.error()));
    switch (*event) {
      case Packets::Event::more:
        return {};
      case Packets::Event::pack:
        return refuse("is a pack where a list of branches is expected");
      case Packets::Event::packet:
        if (auto read = read_line(packets_.payload(), out); !read) return read;
        break;
      case Packets::Event::flush:
        if (step_ == Step::service_end) {
          step_ = Step::first;
        } else if (step_ == Step::first || step_ == Step::others) {
          // Capabilities need a line, which is missing when no reference was kept.
          if (!capabilities_.empty()) write(std::string(kObjectId, '0'), kNone, out);
          step_ = Step::end;
        } else {
          return refuse("is no list of branches");
        }
        out += "0000";
        break;
    }
  }
  return {};
}

Result<void> ReferenceList::read_line(std::string_view line, std::string& out) {
  if (line.starts_with("ERR ")) return reported(without_newline(line.substr(4)));
  if (step_ == Step::service) {
    if (without_newline(line) == "version 2") {
      return unsupported("the server speaks version 2 of Git's protocol alone");
    }
    if (without_newline(line) != "# service=" + service_) return refuse("is no list of branches");
    add_packet(out, line);
    step_ = Step::service_end;
    return {};
  }
  if (step_ == Step::service_end) return refuse("is no list of branches");
  line = without_newline(line);
  if (step_ == Step::first) {
    const auto zero = line.find('\0');
    const auto capabilities = zero == std::string_view::npos ? "" : line.substr(zero + 1);
    const auto format = capability(capabilities, "object-format=");
    if (!format.empty() && format != "sha1") {
      return unsupported(
          "the repository names its objects by another hash than SHA-1 (extension "
          "objectFormat, as SHA-256)");
    }
    read_capabilities(capabilities);
    line = line.substr(0, zero);
    step_ = Step::others;
  }
  if (line.starts_with("shallow ")) {
    return unsupported("the server's repository is a shallow clone, which lacks history");
  }
  if (line.size() <= kObjectId + 1 || !is_object_id(line.substr(0, kObjectId)) ||
      line[kObjectId] != ' ') {
    return refuse("has a line that names no reference");
  }
  const auto id = line.substr(0, kObjectId);
  const auto name = line.substr(kObjectId + 1);
  if (id.find_first_not_of('0') == std::string_view::npos) return {};
  if (!has_branches_ && name.starts_with(kBranches)) has_branches_ = parse_branch(name).has_value();
  if (const auto found = missing_.find(name); found != missing_.end()) {
    missing_.erase(found);
    branches_.emplace(name);
    write(id, name, out);
  }
  return {};
}

// Keeps only capabilities that are used. "thin-pack" is left out, so that deltas are within a pack.
void ReferenceList::read_capabilities(std::string_view text) {
  constexpr std::string_view kUsed[] = {"multi_ack",     "multi_ack_detailed", "side-band",
                                        "side-band-64k", "ofs-delta",          "report-status"};
  constexpr std::string_view kDefault = "symref=HEAD:";
  bool has_default = false;
  while (!text.empty()) {
    const auto word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const bool is_default = !has_default && word.starts_with(kDefault) &&
                            word.substr(kDefault.size()).starts_with(kBranches) &&
                            parse_branch(word.substr(kDefault.size()));
    if (!is_default && std::ranges::find(kUsed, word) == std::end(kUsed)) continue;
    if (capabilities_.size() + word.size() > 1024) continue;
    if (is_default) {
      has_default = true;
      missing_.emplace(word.substr(kDefault.size()));
    }
    if (!capabilities_.empty()) capabilities_ += ' ';
    capabilities_ += word;
  }
  // A line is written for the capabilities, even without any.
  if (capabilities_.empty()) capabilities_ = " ";
}

void ReferenceList::write(std::string_view id, std::string_view name, std::string& out) {
  std::string line(id);
  line += ' ';
  line += name;
  if (!capabilities_.empty()) {
    line += '\0';
    line += capabilities_;
    capabilities_.clear();
  }
  line += '\n';
  add_packet(out, line);
}

bool announces_unborn_head(std::string_view capabilities) {
  return std::ranges::any_of(lines_of(capabilities), [](std::string_view line) {
    constexpr std::string_view kLsRefs = "ls-refs=";
    return line.starts_with(kLsRefs) && line.substr(kLsRefs.size()).contains("unborn");
  });
}

std::string head_request() {
  std::string request;
  add_packet(request, "command=ls-refs\n");
  request += "0001";
  for (const char* argument : {"symrefs\n", "unborn\n", "ref-prefix HEAD\n"}) {
    add_packet(request, argument);
  }
  return request + "0000";
}

std::string branch_of_head(std::string_view answer) {
  constexpr std::string_view kTarget = "HEAD symref-target:refs/heads/";
  for (const std::string_view line : lines_of(answer)) {
    // "unborn", or an id, is first.
    const auto rest = line.substr(std::min(line.find(' '), line.size() - 1) + 1);
    if (!rest.starts_with(kTarget)) continue;
    if (auto branch = parse_branch(rest.substr(kTarget.size()))) return std::move(*branch);
  }
  return {};
}

void ServerWords::add(std::string_view bytes) {
  for (const char c : bytes) {
    if (c == '\n') {
      end_line();
    } else if (c == '\r') {
      returned_ = true;
    } else {
      if (returned_) line_.clear();
      returned_ = false;
      if (line_.size() < kMaxLine) line_ += c;
    }
  }
}

void ServerWords::end_line() {
  const auto line = trimmed(line_);
  const bool has_words = std::ranges::any_of(line, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           static_cast<unsigned char>(c) >= 0x80;
  });
  const bool is_progress = line.contains("% (");
  if (has_words && !is_progress && words_.size() < kMaxWords) {
    if (!words_.empty()) words_ += ' ';
    words_ += line;
  }
  line_.clear();
  returned_ = false;
}

std::string ServerWords::text() const {
  ServerWords whole = *this;
  whole.end_line();
  return std::move(whole.words_);
}

void PushReport::feed(std::string_view bytes) {
  while (!is_over_) {
    const auto event = packets_.next(bytes);
    if (event && *event == Packets::Event::more) return;
    if (event && *event == Packets::Event::packet) {
      read_packet(packets_.payload());
    } else {
      is_over_ = true;
    }
  }
}

void PushReport::read_packet(std::string_view packet) {
  const auto content = packet.substr(1);
  switch (packet.front()) {
    case kData:
      read_report(content);
      break;
    case kProgress:
      words_.add(content);
      break;
    case kError:
      fatal_ = without_newline(content);
      break;
    default:
      read_line(without_newline(packet));
  }
}

void PushReport::read_report(std::string_view bytes) {
  while (!is_over_) {
    const auto event = report_.next(bytes);
    if (event && *event == Packets::Event::more) return;
    if (event && *event == Packets::Event::flush) return;
    if (event && *event == Packets::Event::packet) {
      read_line(without_newline(report_.payload()));
    } else {
      is_over_ = true;
    }
  }
}

void PushReport::read_line(std::string_view line) {
  constexpr std::string_view kUnpack = "unpack ";
  if (line.starts_with(kUnpack)) {
    unpack_ = line.substr(kUnpack.size());
  } else if (line.starts_with("ERR ")) {
    fatal_ = line.substr(4);
  } else if (line.starts_with("ng ")) {
    const auto space = line.find(' ', 3);
    reason_ = space == std::string_view::npos ? "no reason" : line.substr(space + 1);
  }
}

std::string PushReport::refusal() const {
  if (!unpack_.empty() && unpack_ != "ok") return "unpack " + unpack_;
  return reason_.empty() ? fatal_ : reason_;
}

Result<void> FetchAnswer::feed(std::string_view bytes) {
  while (step_ != Step::end) {
    if (step_ == Step::bare) return pack_.feed(bytes);
    auto event = packets_.next(bytes);
    if (!event) return std::unexpected(std::move(event.error()));
    switch (*event) {
      case Packets::Event::more:
        return {};
      case Packets::Event::pack:
        // libgit2 expects it here when the server has no side band, and refuses it otherwise.
        if (step_ != Step::side_band || progress_ > 0) return refuse("has a pack out of place");
        if (auto fed = pack_.feed("PACK"); !fed) return fed;
        step_ = Step::bare;
        break;
      case Packets::Event::packet:
        if (auto read = read_packet(packets_.payload()); !read) return read;
        break;
      case Packets::Event::flush:
        if (step_ != Step::side_band || !pack_.complete()) return refuse("has an incomplete pack");
        step_ = Step::end;
        break;
    }
  }
  return {};
}

Result<void> FetchAnswer::read_packet(std::string_view packet) {
  if (step_ == Step::acknowledgements) {
    if (packet.starts_with("ERR ")) return reported(without_newline(packet.substr(4)));
    const auto line = without_newline(packet);
    if (line == "NAK") {
      step_ = Step::side_band;
      return {};
    }
    if (!line.starts_with("ACK ") || !is_object_id(line.substr(4, kObjectId))) {
      return refuse("to a fetch is malformed");
    }
    const auto status = line.substr(4 + kObjectId);
    if (status.empty()) {
      step_ = Step::side_band;
    } else if (status != " continue" && status != " common" && status != " ready") {
      return refuse("to a fetch is malformed");
    }
    return {};
  }
  const auto content = packet.substr(1);
  switch (packet.front()) {
    case kData:
      return pack_.feed(content);
    case kProgress:
      progress_ += packet.size();
      if (progress_ > kMaxProgress) return refuse("has too many reports of progress");
      words_.add(content);
      return {};
    case kError:
      return reported(without_newline(content), words_.text());
    default:
      return refuse("to a fetch has an unknown packet");
  }
}

}  // namespace gitops::app_proxy
