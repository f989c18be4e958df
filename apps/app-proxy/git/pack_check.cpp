#include "app-proxy/git/pack_check.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <span>

#include <zlib.h>

namespace gitops::app_proxy {
namespace {

constexpr unsigned kOfsDelta = 6;
constexpr unsigned kRefDelta = 7;
constexpr std::size_t kHeader = 12;
constexpr std::size_t kChecksum = 20;
constexpr std::size_t kScratch = 64UL * 1024;
// Largest number of 7-bit digits in a number.
constexpr unsigned kMaxDigits = 9;

std::unexpected<Error> refuse(std::string_view why) {
  return fail(ErrorCode::invalid_data, "the server's pack " + std::string(why));
}

std::unexpected<Error> too_large(std::string_view what) {
  return fail(ErrorCode::too_large, "the server's pack has " + std::string(what));
}

unsigned value_of(char c) {
  return static_cast<unsigned char>(c);
}

// Parses a number of 7 bits a byte, the lowest first, and removes it from `bytes`.
std::optional<std::uint64_t> take_number(std::span<const unsigned char>& bytes) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < bytes.size() && i < kMaxDigits; ++i) {
    value |= static_cast<std::uint64_t>(bytes[i] & 0x7fU) << (7U * i);
    if ((bytes[i] & 0x80U) == 0) {
      bytes = bytes.subspan(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

}  // namespace

struct PackCheck::Inflate {
  Inflate() {
    if (::inflateInit(&z) != Z_OK) throw std::bad_alloc();
  }
  ~Inflate() { ::inflateEnd(&z); }
  Inflate(const Inflate&) = delete;
  Inflate& operator=(const Inflate&) = delete;

  z_stream z{};
  std::array<unsigned char, kScratch> out{};
};

PackCheck::PackCheck(PackLimits limits) : limits_(limits), inflate_(std::make_unique<Inflate>()) {}
PackCheck::PackCheck(PackCheck&&) noexcept = default;
PackCheck& PackCheck::operator=(PackCheck&&) noexcept = default;
PackCheck::~PackCheck() = default;

Result<void> PackCheck::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (step_ == Step::content) {
      if (auto read = read_content(bytes); !read) return read;
      continue;
    }
    const char byte = bytes.front();
    bytes.remove_prefix(1);
    ++offset_;
    Result<void> read;
    switch (step_) {
      case Step::header:
        read = read_header(byte);
        break;
      case Step::entry:
        read = read_entry(byte);
        break;
      case Step::base:
        read = read_base(byte);
        break;
      case Step::checksum:
        head_ += byte;
        if (head_.size() == kChecksum) step_ = Step::end;
        break;
      case Step::content:
      case Step::end:
        return refuse("goes on after its end");
    }
    if (!read) return read;
  }
  return {};
}

Result<void> PackCheck::read_header(char byte) {
  head_ += byte;
  if (head_.size() < kHeader) return {};
  const auto number = [this](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = (value << 8U) | value_of(head_[at + i]);
    return value;
  };
  if (!head_.starts_with("PACK")) return refuse("does not begin as one");
  if (number(4) != 2 && number(4) != 3) return refuse("is of an unknown version");
  objects_left_ = number(8);
  if (objects_left_ > limits_.objects) {
    return too_large("more than " + std::to_string(limits_.objects) + " objects");
  }
  next_object();
  return {};
}

void PackCheck::next_object() {
  head_.clear();
  step_ = objects_left_ == 0 ? Step::checksum : Step::entry;
  start_ = offset_;
  digits_ = 0;
  size_ = 0;
  distance_ = 0;
  base_chain_ = 0;
  made_ = 0;
}

// Reads type and size: 3 and 4 bits in the first byte, then 7 bits a byte.
Result<void> PackCheck::read_entry(char byte) {
  const unsigned bits = value_of(byte);
  if (digits_ == 0) {
    type_ = (bits >> 4U) & 7U;
    size_ = bits & 15U;
  } else {
    if (digits_ >= kMaxDigits) return too_large("an object of an impossible size");
    size_ |= static_cast<std::uint64_t>(bits & 0x7fU) << (4U + 7U * (digits_ - 1));
  }
  ++digits_;
  if ((bits & 0x80U) != 0) return {};
  digits_ = 0;
  if (size_ > limits_.object) {
    return too_large("an object of more than " + std::to_string(limits_.object) + " bytes");
  }
  if (type_ == 0 || type_ == 5) return refuse("has an object of an unknown type");
  if (type_ == kRefDelta) {
    return refuse("has a delta that names its base by id, which was not asked for");
  }
  if (type_ != kOfsDelta) return begin_content();
  step_ = Step::base;
  return {};
}

// Reads the distance to the base: 7 bits a byte, the highest first; each further byte adds one.
Result<void> PackCheck::read_base(char byte) {
  const unsigned bits = value_of(byte);
  if (digits_ >= kMaxDigits) return refuse("has a delta without a base");
  distance_ = digits_ == 0 ? bits & 0x7fU : ((distance_ + 1) << 7U) | (bits & 0x7fU);
  ++digits_;
  if ((bits & 0x80U) != 0) return {};
  digits_ = 0;
  const auto base = distance_ > start_ ? entries_.end()
                                       : std::ranges::lower_bound(entries_, start_ - distance_, {},
                                                                  &Entry::offset);
  if (base == entries_.end() || base->offset != start_ - distance_) {
    return refuse("has a delta whose base is no object of it");
  }
  base_chain_ = base->chain;
  return begin_content();
}

Result<void> PackCheck::begin_content() {
  ::inflateReset(&inflate_->z);
  step_ = Step::content;
  return {};
}

Result<void> PackCheck::read_content(std::string_view& bytes) {
  z_stream& z = inflate_->z;
  const std::size_t offered = std::min(bytes.size(), kScratch);
  // zlib's input pointer is not const, but it does not write to it.
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(offered);
  int status = Z_OK;
  do {
    z.next_out = inflate_->out.data();
    z.avail_out = static_cast<uInt>(kScratch);
    status = ::inflate(&z, Z_NO_FLUSH);
    const std::size_t produced = kScratch - z.avail_out;
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
      return refuse("has an object that cannot be inflated");
    }
    if (made_ < begin_.size()) {
      std::memcpy(begin_.data() + made_, inflate_->out.data(),
                  std::min<std::size_t>(begin_.size() - made_, produced));
    }
    made_ += produced;
    if (made_ > size_) return refuse("has an object that is larger than it says");
  } while (status == Z_OK && z.avail_out == 0);
  const std::size_t used = offered - z.avail_in;
  bytes.remove_prefix(used);
  offset_ += used;
  if (status == Z_STREAM_END) return end_content();
  // A call without progress would be repeated with the same bytes.
  if (used == 0) return refuse("has an object that cannot be inflated");
  return {};
}

Result<void> PackCheck::end_content() {
  if (made_ != size_) return refuse("has an object that is smaller than it says");
  std::uint64_t result = size_;
  if (type_ == kOfsDelta) {
    std::span<const unsigned char> delta(begin_.data(),
                                         std::min<std::size_t>(made_, begin_.size()));
    const auto base_size = take_number(delta);
    const auto result_size = take_number(delta);
    if (!base_size || !result_size) return refuse("has a delta without sizes");
    result = *result_size;
    if (result > limits_.object) {
      return too_large("a delta that makes more than " + std::to_string(limits_.object) + " bytes");
    }
  }
  const std::uint64_t chain = base_chain_ + size_ + (type_ == kOfsDelta ? result : 0);
  if (chain > limits_.chain) return too_large("a chain of deltas that is too long");
  entries_.push_back({.offset = start_, .chain = chain});
  --objects_left_;
  next_object();
  return {};
}

}  // namespace gitops::app_proxy
