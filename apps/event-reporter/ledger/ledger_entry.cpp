#include "event-reporter/ledger/ledger_entry.hpp"

#include <algorithm>
#include <cstdint>

#include <boost/crc.hpp>

namespace gitops::reporter {
namespace {

constexpr char kRowSeparator = '\n';
constexpr char kFormat = 1;
constexpr unsigned kHasChange = 1;
constexpr unsigned kHasApplication = 2;
constexpr unsigned kHasTree = 4;

void put_number(std::string& out, std::size_t number) {
  for (; number >= 0x80; number >>= 7U) out += static_cast<char>((number & 0x7FU) | 0x80U);
  out += static_cast<char>(number);
}

void put_text(std::string& out, std::string_view text) {
  put_number(out, text.size());
  out += text;
}

// Length of the common prefix.
std::size_t shared_prefix(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

void put_digest(std::string& out, const Digest& digest) {
  out.append(digest.begin(), digest.end());
}

// Reads the bytes of an entry from front to back. After the first missing or non-canonical value
// every further read fails, too.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] bool at_end() const { return rest_.empty(); }

  std::string_view bytes(std::size_t size) {
    if (!good_ || size > rest_.size()) {
      good_ = false;
      return {};
    }
    const auto taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  unsigned byte() {
    const auto one = bytes(1);
    return one.empty() ? 0U : static_cast<unsigned char>(one.front());
  }
  std::size_t number() {
    std::size_t number = 0;
    for (unsigned shift = 0; shift < 28; shift += 7) {
      const auto part = byte();
      number |= static_cast<std::size_t>(part & 0x7FU) << shift;
      if ((part & 0x80U) != 0) continue;
      if (part == 0 && shift != 0) good_ = false;  // longer than it needs to be
      return number;
    }
    good_ = false;
    return 0;
  }
  std::string_view text() {
    const auto size = number();
    return bytes(size);
  }
  Digest digest() {
    Digest digest{};
    std::ranges::copy(bytes(digest.size()), digest.begin());
    return digest;
  }

 private:
  std::string_view rest_;
  bool good_ = true;
};

struct Head {
  LedgerHead head;
  std::optional<Digest> application;
  std::optional<Digest> tree;
};

Result<Head> read_head(Reader& reader) {
  if (reader.byte() != static_cast<unsigned>(kFormat)) {
    return fail(ErrorCode::invalid_data, "not a ledger entry of a known format");
  }
  const auto flags = reader.byte();
  Head out;
  out.head.uid = reader.text();
  if ((flags & kHasChange) != 0) out.head.change = reader.digest();
  if ((flags & kHasApplication) != 0) out.application = reader.digest();
  if ((flags & kHasTree) != 0) out.tree = reader.digest();
  if (!reader.good() || flags > (kHasChange | kHasApplication | kHasTree)) {
    return fail(ErrorCode::invalid_data, "the head of a ledger entry is broken");
  }
  return out;
}

}  // namespace

void LedgerEntry::belong_to(std::string_view new_uid) {
  if (uid == new_uid) return;
  *this = {};
  uid = new_uid;
}

void LedgerEntry::acknowledge(const ResourceId& id, const Digest& digest) {
  resources.insert_or_assign(id.identity(), Resource{.version = id.version, .digest = digest});
}

void LedgerEntry::forget(const ResourceId& id) {
  resources.erase(id.identity());
}

std::vector<ResourceId> LedgerEntry::resource_ids() const {
  std::vector<ResourceId> out;
  out.reserve(resources.size());
  for (const auto& [identity, resource] : resources) {
    out.push_back(ResourceId::of_identity(identity, resource.version));
  }
  return out;
}

std::string encode(const LedgerEntry& entry) {
  std::string out{kFormat};
  out +=
      static_cast<char>((entry.change ? kHasChange : 0U) |
                        (entry.application ? kHasApplication : 0U) | (entry.tree ? kHasTree : 0U));
  put_text(out, entry.uid);
  if (entry.change) put_digest(out, *entry.change);
  if (entry.application) put_digest(out, *entry.application);
  if (entry.tree) put_digest(out, *entry.tree);
  std::string_view before;
  for (const auto& [identity, resource] : entry.resources) {
    const auto shared = shared_prefix(before, identity);
    put_number(out, shared);
    put_text(out, std::string_view(identity).substr(shared));
    put_text(out, resource.version);
    put_digest(out, resource.digest);
    before = identity;
  }
  return out;
}

Result<LedgerEntry> decode_entry(std::string_view bytes) {
  if (bytes.size() > kMaxEntryBytes) {
    return fail(ErrorCode::too_large,
                "a ledger entry of " + std::to_string(bytes.size()) + " bytes");
  }
  Reader reader(bytes);
  auto head = read_head(reader);
  if (!head) return std::unexpected(head.error());
  LedgerEntry entry{.uid = std::move(head->head.uid),
                    .change = head->head.change,
                    .application = head->application,
                    .tree = head->tree,
                    .resources = {}};
  std::string_view before;
  std::size_t total = 0;
  while (reader.good() && !reader.at_end()) {
    const auto shared = reader.number();
    const auto rest = reader.text();
    const auto version = reader.text();
    const auto digest = reader.digest();
    total += shared + rest.size();
    if (total > kMaxEntryBytes) return fail(ErrorCode::too_large, "a ledger entry is too large");
    std::string identity(before.substr(0, shared));
    identity += rest;
    const bool canonical = before < identity && shared == shared_prefix(before, identity);
    if (!reader.good() || !canonical || std::ranges::count(identity, '/') < 3) {
      return fail(ErrorCode::invalid_data, "a resource of a ledger entry is broken");
    }
    const auto added = entry.resources.emplace_hint(
        entry.resources.end(), std::move(identity),
        LedgerEntry::Resource{.version = std::string(version), .digest = digest});
    before = added->first;
  }
  return entry;
}

Result<LedgerHead> decode_head(std::string_view bytes) {
  Reader reader(bytes);
  auto head = read_head(reader);
  if (!head) return std::unexpected(head.error());
  return std::move(head->head);
}

std::string inventory_row(std::string_view key, std::string_view uid) {
  std::string row(key);
  row += kRowSeparator;
  return row.append(uid);
}

bool is_inventory_row(std::string_view row) {
  return row.contains(kRowSeparator);
}

std::string_view key_of_row(std::string_view row) {
  return row.substr(0, row.find(kRowSeparator));
}

std::string_view uid_of_row(std::string_view row) {
  const auto at = row.find(kRowSeparator);
  return at == std::string_view::npos ? std::string_view{} : row.substr(at + 1);
}

RowChecksum row_checksum(std::string_view key, std::string_view value) {
  boost::crc_32_type crc;
  for (auto size = key.size(); size > 0; size >>= 8) {
    crc.process_byte(static_cast<unsigned char>(size & 0xff));
  }
  crc.process_byte(0);
  crc.process_bytes(key.data(), key.size());
  crc.process_bytes(value.data(), value.size());
  RowChecksum out;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<std::uint8_t>(crc.checksum() >> (8 * i));
  }
  return out;
}

}  // namespace gitops::reporter
