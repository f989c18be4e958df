#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/git/pack_check.hpp"
#include "common/core/error.hpp"

// Checks the responses of a Git server before libgit2 reads them: the packets of
// gitprotocol-common(5) and the responses of gitprotocol-pack(5), version 0. libgit2 1.5 accepts
// any packet in place of a branch, and compares every name with every symbolic reference; this
// check passes only what the protocol allows. Input comes in pieces of any size. After an error an
// object must not be used. Pure.
namespace gitops::app_proxy {

// Divides a response into packets.
class Packets {
 public:
  enum class Event : std::uint8_t { more, packet, flush, pack };
  // Takes bytes off the front of `bytes` until a packet is complete. `more`: all bytes were taken.
  // `pack`: a pack begins instead of a packet; its first four bytes "PACK" were taken.
  Result<Event> next(std::string_view& bytes);
  // Payload of the last packet.
  [[nodiscard]] std::string_view payload() const { return payload_; }

 private:
  std::string length_;  // of the next packet, as far as it was read
  std::size_t missing_ = 0;
  std::string payload_;
};

// Filters the list of references of a repository. The output has the requested branches, the
// default branch and HEAD, each once, and only the capabilities that are used. libgit2 looks for
// every listed reference in the clone before a push, so others would cost time.
class ReferenceList {
 public:
  // `service` is "git-upload-pack" or "git-receive-pack". `branches` are short names that
  // parse_branch() returned, or "refs/tags/" and the name of a tag.
  ReferenceList(std::string service, const std::vector<std::string>& branches);

  // Appends the filtered list to `out`.
  Result<void> feed(std::string_view bytes, std::string& out);
  [[nodiscard]] bool complete() const { return step_ == Step::end; }
  // True once the list had a branch, requested or not, whose name parse_branch() accepts.
  [[nodiscard]] bool has_branches() const { return has_branches_; }
  // Checks whether the list, as far as it was read, has this name. Covers only names in the output.
  [[nodiscard]] bool has(std::string_view name) const { return branches_.contains(name); }

 private:
  enum class Step : std::uint8_t { service, service_end, first, others, end };
  Result<void> read_line(std::string_view line, std::string& out);
  void read_capabilities(std::string_view text);
  void write(std::string_view id, std::string_view name, std::string& out);

  std::string service_;
  std::set<std::string, std::less<>> missing_;  // requested names that have not come yet
  std::set<std::string, std::less<>> branches_;
  Packets packets_;
  Step step_ = Step::service;
  std::string capabilities_;  // for the first line; empty once it is written
  bool has_branches_ = false;
};

// Checks whether the capabilities of a server announce the request for an unborn HEAD of protocol
// version 2 (gitprotocol-v2(5)). Only its response names the future branch of a repository without
// commits.
bool announces_unborn_head(std::string_view capabilities);
std::string head_request();
// Returns the branch that the response names; empty when there is none.
std::string branch_of_head(std::string_view answer);

// Collects texts that a server sends for people, as one line, without progress reports and without
// lines that have no words. Keeps the first 2 KiB. The text is not trusted.
class ServerWords {
 public:
  void add(std::string_view bytes);
  [[nodiscard]] std::string text() const;

 private:
  void end_line();

  std::string words_;
  std::string line_;
  bool returned_ = false;  // a carriage return came: the next text replaces the line
};

// Parses the response to a push: the report of gitprotocol-pack(5), bare or in a side band. It sees
// the same bytes as libgit2, which reports less: no text for "unpack <error>". A malformed report
// is ignored.
class PushReport {
 public:
  void feed(std::string_view bytes);
  // Reason for which the server refuses the push: "unpack <error>", the reason of the branch, or a
  // fatal error. Empty while it has not refused.
  [[nodiscard]] std::string refusal() const;
  // Other texts of the server and its hooks.
  [[nodiscard]] std::string words() const { return words_.text(); }

 private:
  void read_packet(std::string_view packet);
  void read_report(std::string_view bytes);
  void read_line(std::string_view line);

  Packets packets_;
  Packets report_;  // within the side band
  bool is_over_ = false;
  std::string unpack_;  // status of "unpack"
  std::string reason_;  // of the branch
  std::string fatal_;
  ServerWords words_;
};

// Checks the response to a fetch: acknowledgements, then a pack, bare or in a side band. The pack
// must pass PackCheck; progress reports are limited to 1 MiB.
class FetchAnswer {
 public:
  explicit FetchAnswer(PackLimits limits = {}) : pack_(limits) {}
  Result<void> feed(std::string_view bytes);

 private:
  enum class Step : std::uint8_t { acknowledgements, side_band, bare, end };
  Result<void> read_packet(std::string_view packet);

  Packets packets_;
  PackCheck pack_;
  Step step_ = Step::acknowledgements;
  std::size_t progress_ = 0;
  ServerWords words_;
};

}  // namespace gitops::app_proxy
