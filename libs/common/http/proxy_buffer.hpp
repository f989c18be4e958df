#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace gitops::http {

// Blocks of memory that connections take for as long as something is in them, so that idle ones
// cost none. Loop thread only; outlives its blocks.
class BlockPool {
 public:
  static constexpr std::size_t kSize = 32 * 1024;
  static constexpr std::size_t kMaxFree = 128;

  char* take() {
    if (free_.empty()) return new char[kSize];
    char* block = free_.back().release();
    free_.pop_back();
    return block;
  }
  void give(char* block) {
    std::unique_ptr<char[]> owned(block);
    if (block != nullptr && free_.size() < kMaxFree) free_.push_back(std::move(owned));
  }

 private:
  std::vector<std::unique_ptr<char[]>> free_;
};

// The bytes of a connection that were received and not yet consumed, in one block.
class ProxyBuffer {
 public:
  explicit ProxyBuffer(BlockPool& pool) : pool_(&pool) {}
  ~ProxyBuffer() { pool_->give(data_); }
  ProxyBuffer(const ProxyBuffer&) = delete;
  ProxyBuffer& operator=(const ProxyBuffer&) = delete;

  [[nodiscard]] std::string_view bytes() const { return {data_ + begin_, end_ - begin_}; }
  [[nodiscard]] bool empty() const { return begin_ == end_; }
  void consume(std::size_t size) { begin_ += size; }

  // Room behind the bytes; none when the block is full. Bytes stay where they are.
  std::span<char> room() {
    if (data_ == nullptr) {
      data_ = pool_->take();
      begin_ = end_ = 0;
    }
    if (empty()) begin_ = end_ = 0;
    return {data_ + end_, BlockPool::kSize - end_};
  }
  void commit(std::size_t size) { end_ += size; }

  // Moves the bytes to the start of the block; slices of them become invalid.
  void compact() {
    if (begin_ == 0) return;
    std::memmove(data_, data_ + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  // Gives the block back while nothing is in it.
  void release() {
    if (!empty()) return;
    pool_->give(std::exchange(data_, nullptr));
    begin_ = end_ = 0;
  }
  void swap(ProxyBuffer& other) {
    std::swap(pool_, other.pool_);
    std::swap(data_, other.data_);
    std::swap(begin_, other.begin_);
    std::swap(end_, other.end_);
  }

 private:
  BlockPool* pool_;
  char* data_ = nullptr;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace gitops::http
