#include "event-reporter/ledger/ledger_entry.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include <boost/crc.hpp>

namespace gitops::reporter {
namespace {

constexpr char kRowSeparator = '\n';
constexpr char kFormat = 2;
constexpr char kFormatWithoutSequences = 1;
constexpr unsigned kHasChange = 1;
constexpr unsigned kHasApplication = 2;
constexpr unsigned kHasTree = 4;
constexpr unsigned kHasRefusals = 8;

void put_number(std::string& out, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7U) out += static_cast<char>((number & 0x7FU) | 0x80U);
  out += static_cast<char>(number);
}

void put_text(std::string& out, std::string_view text) {
  put_number(out, text.size());
  out += text;
}

// Returns the length of the common prefix.
std::size_t shared_prefix(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

void put_digest(std::string& out, const Digest& digest) {
  out.append(digest.begin(), digest.end());
}

// An age of 64 bits has room for the acknowledgement beside a difference of 63.
constexpr Sequence kMaxSequence = std::numeric_limits<Sequence>::max() / 2;

void put_part(std::string& out, const LedgerEntry::Part& part, Sequence newest) {
  put_digest(out, part.digest);
  const auto age = newest - std::min(part.sequence, newest);
  put_number(out, age * 2 + (part.acknowledged ? 1 : 0));
}

void put_refusals(std::string& out, const std::vector<Refusal>& refused) {
  put_number(out, refused.size());
  for (const auto& refusal : refused) {
    put_text(out, refusal.part);
    put_digest(out, refusal.digest);
    put_number(out, refusal.sequence);
    put_number(out, static_cast<std::uint64_t>(refusal.status));
    put_number(out, static_cast<std::uint64_t>(refusal.since));
    put_text(out, refusal.reason);
  }
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
  std::size_t number() { return static_cast<std::size_t>(number_of(28)); }
  std::uint64_t long_number() { return number_of(64); }
  std::string_view text() {
    const auto size = number();
    return bytes(size);
  }
  Digest digest() {
    Digest digest{};
    std::ranges::copy(bytes(digest.size()), digest.begin());
    return digest;
  }
  // Reads a part. `newest` is the entry's sequence; absent in the format without sequences.
  LedgerEntry::Part part(std::optional<Sequence> newest) {
    LedgerEntry::Part part{.digest = digest(), .sequence = 0, .acknowledged = true};
    if (!newest) return part;
    const auto age = long_number();
    if (age / 2 > *newest) good_ = false;
    part.sequence = *newest - std::min(age / 2, *newest);
    part.acknowledged = age % 2 == 1;
    return part;
  }

  std::vector<Refusal> refusals() {
    std::vector<Refusal> out;
    const auto count = number();
    if (count == 0) good_ = false;
    while (good_ && out.size() < count) {
      Refusal next{.part = std::string(text()),
                   .digest = digest(),
                   .sequence = long_number(),
                   .status = static_cast<int>(number()),
                   .since = static_cast<std::int64_t>(long_number()),
                   .reason = std::string(text())};
      if (!out.empty() && next.part <= out.back().part) good_ = false;
      out.push_back(std::move(next));
    }
    return out;
  }

 private:
  std::uint64_t number_of(unsigned bits) {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < bits; shift += 7) {
      const auto part = byte();
      const auto digit = std::uint64_t{part & 0x7FU};
      if (digit << shift >> shift != digit) good_ = false;  // more than 64 bits
      number |= digit << shift;
      if ((part & 0x80U) != 0) continue;
      if (part == 0 && shift != 0) good_ = false;  // not the shortest form
      return number;
    }
    good_ = false;
    return 0;
  }

  std::string_view rest_;
  bool good_ = true;
};

// The beginning of an entry, up to its resources.
struct Head {
  LedgerEntry entry;
  bool has_sequences = false;
};

Result<Head> read_head(Reader& reader) {
  const auto format = reader.byte();
  Head out{.entry = {}, .has_sequences = format == static_cast<unsigned>(kFormat)};
  if (!out.has_sequences && format != static_cast<unsigned>(kFormatWithoutSequences)) {
    return fail(ErrorCode::invalid_data, "not a ledger entry of a known format");
  }
  const auto flags = reader.byte();
  auto& entry = out.entry;
  entry.uid = reader.text();
  std::optional<Sequence> newest;
  if (out.has_sequences) newest = entry.sequence = reader.long_number();
  if ((flags & kHasChange) != 0) entry.change = reader.digest();
  if ((flags & kHasApplication) != 0) entry.application = reader.part(newest);
  if ((flags & kHasTree) != 0) entry.tree = reader.digest();
  if ((flags & kHasRefusals) != 0) entry.refused = reader.refusals();
  const auto known = kHasChange | kHasApplication | kHasTree;
  if (!reader.good() || flags > (out.has_sequences ? known | kHasRefusals : known) ||
      entry.sequence > kMaxSequence) {
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

Sequence LedgerPart::announce(const Digest& content, Sequence fresh) {
  const bool announced = !acknowledged && digest == content && sequence != 0;
  if (!announced) *this = {.digest = content, .sequence = fresh, .acknowledged = false};
  return sequence;
}

namespace {

auto refusal_at(auto& refused, std::string_view part) {
  return std::ranges::lower_bound(
      refused, part, {}, [](const Refusal& refusal) { return std::string_view(refusal.part); });
}

void end_refusal(std::vector<Refusal>& refused, std::string_view part) {
  const auto found = refusal_at(refused, part);
  if (found != refused.end() && found->part == part) refused.erase(found);
}

void begin_refusal(std::vector<Refusal>& refused, Refusal refusal, std::string_view reason) {
  refusal.reason = reason.substr(0, kMaxReason);
  end_refusal(refused, refusal.part);
  refused.insert(refusal_at(refused, refusal.part), std::move(refusal));
}

std::int64_t seconds_of(WallTime time) {
  return std::max<std::int64_t>(
      0, std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count());
}

}  // namespace

void LedgerEntry::refuse(int status, WallTime now, std::string_view reason) {
  if (!application) return;
  begin_refusal(refused,
                {.part = {},
                 .digest = application->digest,
                 .sequence = application->sequence,
                 .status = status,
                 .since = seconds_of(now),
                 .reason = {}},
                reason);
}

void LedgerEntry::refuse(const ResourceId& id, int status, WallTime now, std::string_view reason) {
  const auto found = resources.find(id.identity());
  if (found == resources.end()) return;
  begin_refusal(refused,
                {.part = found->first,
                 .digest = found->second.last.digest,
                 .sequence = found->second.last.sequence,
                 .status = status,
                 .since = seconds_of(now),
                 .reason = {}},
                reason);
}

bool LedgerEntry::is_refused(std::string_view part, const Digest& content) const {
  const auto found = refusal_at(refused, part);
  return found != refused.end() && found->part == part && found->digest == content;
}

Sequence LedgerEntry::announce(const Digest& content, Sequence fresh) {
  if (!application) application.emplace();
  if (!is_refused({}, content)) end_refusal(refused, {});
  const auto used = application->announce(content, fresh);
  sequence = std::max(sequence, used);
  return used;
}

Sequence LedgerEntry::announce(const ResourceId& id, const Digest& content, Sequence fresh) {
  auto& resource = resources[id.identity()];
  resource.version = id.version;
  if (!is_refused(id.identity(), content)) end_refusal(refused, id.identity());
  const auto used = resource.last.announce(content, fresh);
  sequence = std::max(sequence, used);
  return used;
}

void LedgerEntry::acknowledge(const Digest& content) {
  if (!application) application.emplace();
  application->digest = content;
  application->acknowledged = true;
  end_refusal(refused, {});
}

void LedgerEntry::acknowledge(const ResourceId& id, const Digest& content) {
  auto& resource = resources[id.identity()];
  resource.version = id.version;
  resource.last.digest = content;
  resource.last.acknowledged = true;
  end_refusal(refused, id.identity());
}

void LedgerEntry::note(const ResourceId& id) {
  resources.try_emplace(id.identity(), Resource{.version = id.version});
}

void LedgerEntry::forget_contents() {
  change.reset();
  application.reset();
  for (auto& [identity, resource] : resources) resource.last = {};
}

void LedgerEntry::distrust() {
  forget_contents();
  refused.clear();
}

void LedgerEntry::forget(const ResourceId& id) {
  resources.erase(id.identity());
  end_refusal(refused, id.identity());
}

std::vector<ResourceId> LedgerEntry::resource_ids() const {
  std::vector<ResourceId> out;
  out.reserve(resources.size());
  for (const auto& [identity, resource] : resources) {
    out.push_back(ResourceId::of_identity(identity, resource.version));
  }
  return out;
}

LedgerHead head_of(const LedgerEntry& entry) {
  return {.uid = entry.uid,
          .change = entry.change,
          .sequence = entry.sequence,
          .gone = entry.is_gone(),
          .refused = entry.refused};
}

std::string encode(const LedgerEntry& entry) {
  constexpr std::size_t kResource = 40;  // bytes of most resources
  std::string out;
  out.reserve((entry.resources.size() + 3) * kResource);
  out += kFormat;
  out += static_cast<char>(
      (entry.change ? kHasChange : 0U) | (entry.application ? kHasApplication : 0U) |
      (entry.tree ? kHasTree : 0U) | (entry.refused.empty() ? 0U : kHasRefusals));
  put_text(out, entry.uid);
  const auto newest = std::min(entry.sequence, kMaxSequence);
  put_number(out, newest);
  if (entry.change) put_digest(out, *entry.change);
  if (entry.application) put_part(out, *entry.application, newest);
  if (entry.tree) put_digest(out, *entry.tree);
  if (!entry.refused.empty()) put_refusals(out, entry.refused);
  std::string_view before;
  for (const auto& [identity, resource] : entry.resources) {
    const auto shared = shared_prefix(before, identity);
    put_number(out, shared);
    put_text(out, std::string_view(identity).substr(shared));
    put_text(out, resource.version);
    put_part(out, resource.last, newest);
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
  auto entry = std::move(head->entry);
  const auto newest = head->has_sequences ? std::optional(entry.sequence) : std::nullopt;
  std::string_view before;
  std::size_t total = 0;
  while (reader.good() && !reader.at_end()) {
    const auto shared = reader.number();
    const auto rest = reader.text();
    const auto version = reader.text();
    const auto part = reader.part(newest);
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
        LedgerEntry::Resource{.version = std::string(version), .last = part});
    before = added->first;
  }
  return entry;
}

Result<LedgerHead> decode_head(std::string_view bytes) {
  Reader reader(bytes);
  auto head = read_head(reader);
  if (!head) return std::unexpected(head.error());
  return head_of(head->entry);
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
