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

namespace gitops::reporter {

// The state of one object that the control plane has acknowledged. It belongs to one uid: an object
// that was deleted and created again under the same name starts with an empty entry. Pure.
struct LedgerEntry {
  struct Resource {
    std::string version;  // API version of its last event
    Digest digest{};
    bool operator==(const Resource&) const = default;
  };
  std::string uid;
  // change_digest() of the text whose events have all been acknowledged; absent while one is due.
  std::optional<Digest> change = {};
  std::optional<Digest> application = {};  // of the application's own event
  std::optional<Digest> tree = {};         // tree_digest() of the resource tree of the last report
  std::map<std::string, Resource, std::less<>> resources = {};  // by ResourceId::identity()

  bool operator==(const LedgerEntry&) const = default;

  // Makes the entry that of `new_uid`: an entry of another uid becomes empty.
  void belong_to(std::string_view new_uid);
  void acknowledge(const ResourceId& id, const Digest& digest);
  // Removes a resource whose deletion was acknowledged.
  void forget(const ResourceId& id);
  // Every acknowledged resource, with the API version of its last event.
  [[nodiscard]] std::vector<ResourceId> resource_ids() const;
};

// -- as bytes --
//
// 1 byte format (1) · 1 byte flags (1: change, 2: application, 4: tree) · text uid · 16 bytes for
// each flag · per resource, ascending by identity, to the end: number of bytes its identity shares
// with the one before · text the rest of its identity · text version · 16 bytes digest. A text is
// its length and its bytes; numbers are LEB128.

// -- rows --
//
// An object that this process reported has a row named by its key. An object that another replica
// reports (PeerInventory) has a row for each uid, named by key and uid with a separator that no key
// contains.
[[nodiscard]] std::string inventory_row(std::string_view key, std::string_view uid);
[[nodiscard]] bool is_inventory_row(std::string_view row);
// The key in a row's name, and the uid; empty in one that has none.
[[nodiscard]] std::string_view key_of_row(std::string_view row);
[[nodiscard]] std::string_view uid_of_row(std::string_view row);

// More than any real application needs: 100,000 resources.
inline constexpr std::size_t kMaxEntryBytes = std::size_t{16} * 1024 * 1024;

// The part of an entry that is kept in memory.
struct LedgerHead {
  std::string uid;
  std::optional<Digest> change;
  bool operator==(const LedgerHead&) const = default;
};

[[nodiscard]] std::string encode(const LedgerEntry& entry);
// invalid_data for anything that encode() does not write, and for more than kMaxEntryBytes.
[[nodiscard]] Result<LedgerEntry> decode_entry(std::string_view bytes);
// Reads only the beginning of the entry.
[[nodiscard]] Result<LedgerHead> decode_head(std::string_view bytes);

// CRC-32 of a row's key and value, least significant byte first. Reveals a damaged row.
using RowChecksum = std::array<std::uint8_t, 4>;
[[nodiscard]] RowChecksum row_checksum(std::string_view key, std::string_view value);

}  // namespace gitops::reporter
