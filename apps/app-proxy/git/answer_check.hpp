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

// Reads what a Git server answers before libgit2 does: the packets of gitprotocol-common(5) and the
// answers of gitprotocol-pack(5), version 0. libgit2 1.5 takes any packet where it expects a branch,
// and compares every name with every symbolic reference; here only what a server may say passes.
// Answers come in pieces of any size. Nothing may follow an error. Pure.
namespace gitops::app_proxy {

// Divides an answer into packets.
class Packets {
 public:
  enum class Event : std::uint8_t { more, packet, flush, pack };
  // Takes bytes off the front of `bytes` until a packet is complete. `more`: all were taken.
  // `pack`: instead of a packet a pack begins, whose first four bytes "PACK" were taken.
  Result<Event> next(std::string_view& bytes);
  // Of the last packet.
  [[nodiscard]] std::string_view payload() const { return payload_; }

 private:
  std::string length_;  // of the next packet, as far as it was read
  std::size_t missing_ = 0;
  std::string payload_;
};

// The list of references that a repository has. Writes it again, with the branches that are asked
// for, the default branch and HEAD, each once, and of the server's capabilities those that are used.
// libgit2 looks for every reference it knows in the clone before a push, so others would cost time.
class ReferenceList {
 public:
  // `service`: "git-upload-pack" or "git-receive-pack". `branches`: short names that parse_branch()
  // returned, or "refs/tags/" and the name of a tag.
  ReferenceList(std::string service, const std::vector<std::string>& branches);

  // Appends to `out` what libgit2 may see.
  Result<void> feed(std::string_view bytes, std::string& out);
  [[nodiscard]] bool complete() const { return step_ == Step::end; }
  // True once the list had a branch, asked for or not, with a name that parse_branch() takes.
  [[nodiscard]] bool has_branches() const { return has_branches_; }
  // Of the names that are shown: whether the list has it, as far as it was read.
  [[nodiscard]] bool has(std::string_view name) const { return branches_.contains(name); }

 private:
  enum class Step : std::uint8_t { service, service_end, first, others, end };
  Result<void> read_line(std::string_view line, std::string& out);
  void read_capabilities(std::string_view text);
  void write(std::string_view id, std::string_view name, std::string& out);

  std::string service_;
  std::set<std::string, std::less<>> missing_;  // names to be shown that have not come yet
  std::set<std::string, std::less<>> branches_;
  Packets packets_;
  Step step_ = Step::service;
  std::string capabilities_;  // for the first line; empty once it is written
  bool has_branches_ = false;
};

// Of protocol version 2 (gitprotocol-v2(5)): the question for HEAD, which alone names the branch
// that a repository without commits will have, and its answer. Whether the capabilities of a server
// say that it answers it.
bool announces_unborn_head(std::string_view capabilities);
std::string head_request();
// The branch; empty when the answer names none.
std::string branch_of_head(std::string_view answer);

// Texts that a server sends for people while it works, as one line: without reports of progress and
// without lines that have no words. The first 2 KiB are kept. Nothing in it can be trusted.
class ServerWords {
 public:
  void add(std::string_view bytes);
  [[nodiscard]] std::string text() const;

 private:
  void end_line();

  std::string words_;
  std::string line_;
  bool returned_ = false;  // a carriage return came: what follows replaces the line
};

// The answer to a push: the report of gitprotocol-pack(5), bare or in a side band. It is read
// beside libgit2, which tells less of it: of "unpack <error>" only that there is one. A malformed
// report says nothing.
class PushReport {
 public:
  void feed(std::string_view bytes);
  // Why the server does not take the push: "unpack <error>", the reason of the branch, or a fatal
  // error; empty while it has not refused.
  [[nodiscard]] std::string refusal() const;
  // What the server and its hooks said beside it.
  [[nodiscard]] std::string words() const { return words_.text(); }

 private:
  void read_packet(std::string_view packet);
  void read_report(std::string_view bytes);
  void read_line(std::string_view line);

  Packets packets_;
  Packets report_;  // within the side band
  bool is_over_ = false;
  std::string unpack_;  // its status
  std::string reason_;  // of the branch
  std::string fatal_;
  ServerWords words_;
};

// The answer to a fetch: acknowledgements, then a pack, bare or in a side band. The pack must pass
// PackCheck, progress reports are limited to 1 MiB.
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
