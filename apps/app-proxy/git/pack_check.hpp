#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"

namespace gitops::app_proxy {

// Limits for the cost of unpacking a pack.
struct PackLimits {
  std::uint32_t objects = 4'000'000;
  std::uint64_t object = std::uint64_t{256} * 1024 * 1024;  // largest object, unpacked bytes
  // Largest number of bytes produced for one object, including all its bases. Git makes chains of
  // 50 deltas, of 250 at most.
  std::uint64_t chain = std::uint64_t{16} * 1024 * 1024 * 1024;
};

// Reads a pack (gitformat-pack(5), versions 2 and 3) in pieces and refuses one that would exceed
// the limits. libgit2 1.5 walks chains of any length without checking for a stop, and never returns
// from some packs. Two rules are narrower than Git's: deltas must name their base by its offset,
// which must be that of an earlier object, and sizes must be true. Servers send such offsets when
// the request has "ofs-delta" and not "thin-pack".
//
// Each object is inflated once and discarded. Keeps 16 bytes for each object. Any thread, one at a
// time; no I/O.
class PackCheck {
 public:
  explicit PackCheck(PackLimits limits = {});
  PackCheck(PackCheck&&) noexcept;
  PackCheck& operator=(PackCheck&&) noexcept;
  ~PackCheck();

  // Checks the next bytes, in pieces of any size. `invalid_data` or `too_large`; must not be called
  // after an error.
  Result<void> feed(std::string_view bytes);
  // True when the header, all objects and the checksum have been read. The checksum is not
  // compared.
  [[nodiscard]] bool complete() const { return step_ == Step::end; }

 private:
  enum class Step : std::uint8_t { header, entry, base, content, checksum, end };
  struct Entry {
    std::uint64_t offset = 0;
    std::uint64_t chain = 0;  // bytes made to get it
  };
  struct Inflate;

  Result<void> read_header(char byte);
  Result<void> read_entry(char byte);
  Result<void> read_base(char byte);
  Result<void> read_content(std::string_view& bytes);
  Result<void> begin_content();
  Result<void> end_content();
  void next_object();

  PackLimits limits_;
  Step step_ = Step::header;
  std::uint64_t offset_ = 0;  // of the next byte
  std::string head_;          // header or checksum so far
  std::uint32_t objects_left_ = 0;
  std::vector<Entry> entries_;
  std::unique_ptr<Inflate> inflate_;

  // State of the present object.
  std::uint64_t start_ = 0;
  unsigned type_ = 0;
  std::uint64_t size_ = 0;
  unsigned digits_ = 0;  // bytes read of the present number
  std::uint64_t distance_ = 0;
  std::uint64_t base_chain_ = 0;
  std::uint64_t made_ = 0;
  std::array<unsigned char, 20> begin_{};  // of a delta: the sizes of base and result
};

}  // namespace gitops::app_proxy
