#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "event-reporter/ledger/digest.hpp"
#include "event-reporter/ledger/resource_id.hpp"
#include "event-reporter/ledger/sequence.hpp"

namespace gitops::reporter {

// The digest of a deletion.
inline constexpr Digest kGone = [] {
  Digest digest{};
  digest.fill(0xff);
  return digest;
}();

// The last event of a part: of the application itself, or of one of its resources.
struct LedgerPart {
  Digest digest{};            // digest of its content; kGone: a deletion; zeros: not known
  Sequence sequence = 0;      // 0: not known
  bool acknowledged = false;  // the control plane has the event

  // Announces an event with this content. It gets the sequence `fresh`, unless it was announced
  // before. Returns its sequence.
  Sequence announce(const Digest& content, Sequence fresh);
  // Returns whether the control plane has an event with this content.
  [[nodiscard]] bool has(const Digest& content) const { return acknowledged && digest == content; }
  bool operator==(const LedgerPart&) const = default;
};

// The mark of an event that the control plane refused for good. The part is not due while its
// content is the same.
struct Refusal {
  std::string part;  // identity of the resource; empty: the application's own event
  Digest digest{};   // digest of the event's content
  Sequence sequence = 0;
  int status = 0;          // status of the response; 0: the event could not be sent
  std::int64_t since = 0;  // time of the refusal, in seconds since 1970
  std::string reason;      // the beginning of the response, at most kMaxReason bytes
  bool operator==(const Refusal&) const = default;
};
inline constexpr std::size_t kMaxReason = 300;

// The events of one object that the control plane has, or may have. It belongs to one uid: an
// object that was deleted and created again under the same name starts with an empty entry. Pure.
//
// An event is announced before it is sent, so that a restart knows which events may have arrived. A
// part whose event was not acknowledged is sent again: with the same sequence while its content is
// the same, otherwise with a new one.
struct LedgerEntry {
  using Part = LedgerPart;
  struct Resource {
    std::string version;  // API version in its last event
    Part last = {};
    bool operator==(const Resource&) const = default;
  };
  std::string uid;
  // change_digest() of the text whose events have all been acknowledged; absent while one is due.
  std::optional<Digest> change = {};
  std::optional<Part> application = {};  // the application's own event
  std::optional<Digest> tree = {};       // tree_digest() of the resource tree of the last report
  std::map<std::string, Resource, std::less<>> resources = {};  // by ResourceId::identity()
  Sequence sequence = 0;              // the highest one that was announced for any part
  std::vector<Refusal> refused = {};  // ascending by part, one of each

  bool operator==(const LedgerEntry&) const = default;

  // Assigns the entry to `new_uid`: an entry of another uid becomes empty.
  void belong_to(std::string_view new_uid);
  // Calls Part::announce() for the application's own event, or for a resource's.
  Sequence announce(const Digest& content, Sequence fresh);
  Sequence announce(const ResourceId& id, const Digest& content, Sequence fresh);
  // Records that the announced event, or one with this content, was acknowledged.
  void acknowledge(const Digest& content);
  void acknowledge(const ResourceId& id, const Digest& content);
  // Records that the announced event was refused for good.
  void refuse(int status, WallTime now, std::string_view reason);
  void refuse(const ResourceId& id, int status, WallTime now, std::string_view reason);
  // Returns whether an event of the part with this content was refused for good.
  [[nodiscard]] bool is_refused(std::string_view part, const Digest& content) const;
  // Returns whether an event of the object was announced; otherwise only its parts were noted.
  [[nodiscard]] bool was_announced() const { return application || sequence != 0; }
  // Returns whether the object was deleted and the deletion was announced.
  [[nodiscard]] bool is_gone() const { return application && application->digest == kGone; }
  // Records that the resource may have been reported, by any event.
  void note(const ResourceId& id);
  // Removes a resource whose deletion was acknowledged.
  void forget(const ResourceId& id);
  // Makes every part due again, with a new sequence, except for events that were refused for good.
  void forget_contents();
  // Makes every part due as forget_contents() does, because another replica may have reported them,
  // and forgets the refusals, too.
  void distrust();
  // Returns every resource that may have been reported, with the API version of its last event.
  [[nodiscard]] std::vector<ResourceId> resource_ids() const;
};

// -- as bytes --
//
// 1 byte format (2) · 1 byte flags (1: change, 2: application, 4: tree, 8: refusals) · text uid · number
// sequence · 16 bytes change · part application · 16 bytes tree · refusals · per resource, ascending
// by identity, to the end: number of bytes its identity shares with the one before · text the rest of
// its identity · text version · part. A part is 16 bytes digest · number age: twice the difference of
// the entry's sequence and its own, plus one when it was acknowledged. Refusals are their number and
// for each, ascending by part: text part · 16 bytes digest · number sequence · number status · number
// since · text reason. A text is its length and its bytes; numbers are LEB128, of 64 bits for
// sequences, ages and times, else of 28.
//
// Format 1 has no sequences and no ages. It is read as acknowledged with sequence 0, and not
// written any more.

// -- rows --
//
// An object that this process reported has a row named by its key. An object that another replica
// reports (PeerInventory) has a row for each uid, named by key and uid with a separator that no key
// contains.
[[nodiscard]] std::string inventory_row(std::string_view key, std::string_view uid);
[[nodiscard]] bool is_inventory_row(std::string_view row);
// Returns the key in a row's name, and the uid; empty when the name has none.
[[nodiscard]] std::string_view key_of_row(std::string_view row);
[[nodiscard]] std::string_view uid_of_row(std::string_view row);

// Limit of an encoded entry. It exceeds the needs of any real application: 100,000 resources.
inline constexpr std::size_t kMaxEntryBytes = std::size_t{16} * 1024 * 1024;

// The part of an entry that is kept in memory.
struct LedgerHead {
  std::string uid;
  std::optional<Digest> change;
  Sequence sequence = 0;              // LedgerEntry::sequence
  bool gone = false;                  // LedgerEntry::is_gone()
  std::vector<Refusal> refused = {};  // as in the entry
  bool operator==(const LedgerHead&) const = default;
};

[[nodiscard]] LedgerHead head_of(const LedgerEntry& entry);
[[nodiscard]] std::string encode(const LedgerEntry& entry);
// Decodes an entry; invalid_data for bytes that encode() cannot have written, and for more than
// kMaxEntryBytes.
[[nodiscard]] Result<LedgerEntry> decode_entry(std::string_view bytes);
// Reads only the beginning of the entry.
[[nodiscard]] Result<LedgerHead> decode_head(std::string_view bytes);

// CRC-32 of a row's key and value, least significant byte first. Reveals a damaged row.
using RowChecksum = std::array<std::uint8_t, 4>;
[[nodiscard]] RowChecksum row_checksum(std::string_view key, std::string_view value);

}  // namespace gitops::reporter
