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

// What the control plane has acknowledged of one application. It belongs to one uid: an application
// that was made anew under the same name starts from nothing. Pure.
struct LedgerEntry {
  struct Resource {
    std::string version;  // it was last reported with
    Digest digest{};
    bool operator==(const Resource&) const = default;
  };
  std::string uid;
  // change_digest of the Application's text that was reported in full, resources included; absent
  // while something of it is still due.
  std::optional<Digest> change = {};
  std::optional<Digest> application = {};  // of its own event
  std::optional<Digest> tree = {};         // tree_digest of Argo CD's tree when all was reported
  std::map<std::string, Resource, std::less<>> resources = {};  // by ResourceId::identity()

  bool operator==(const LedgerEntry&) const = default;

  // Empties the entry unless it is of that uid already.
  void belong_to(std::string_view owner);
  void acknowledge(const ResourceId& id, const Digest& digest);
  // The deletion was acknowledged.
  void forget(const ResourceId& id);
  // Every acknowledged resource, with the version it was reported with.
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
// What this process reported of an object is kept under the object's key. What it saw of one that
// others report (PeerInventory) is kept per uid, under this: a name with a character that no key has.
[[nodiscard]] std::string inventory_row(std::string_view key, std::string_view uid);
[[nodiscard]] bool is_inventory_row(std::string_view row);
// The key in a row's name, and the uid; empty in one that has none.
[[nodiscard]] std::string_view key_of_row(std::string_view row);
[[nodiscard]] std::string_view uid_of_row(std::string_view row);

// More than any real application needs: 100,000 resources.
inline constexpr std::size_t kMaxEntryBytes = std::size_t{16} * 1024 * 1024;

// What the index of all applications keeps of an entry.
struct LedgerHead {
  std::string uid;
  std::optional<Digest> change;
  bool operator==(const LedgerHead&) const = default;
};

[[nodiscard]] std::string encode(const LedgerEntry& entry);
// invalid_data for anything that encode() does not write, and for more than kMaxEntryBytes.
[[nodiscard]] Result<LedgerEntry> decode_entry(std::string_view bytes);
// Reads no further than it needs to.
[[nodiscard]] Result<LedgerHead> decode_head(std::string_view bytes);

// CRC-32 of a row's key and value, least significant byte first: a damaged row is seen by it.
using RowChecksum = std::array<std::uint8_t, 4>;
[[nodiscard]] RowChecksum row_checksum(std::string_view key, std::string_view value);

}  // namespace gitops::reporter
