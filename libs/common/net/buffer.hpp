#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace gitops::net {

// Pool of memory blocks. A connection holds a block only while it has bytes, so an idle connection
// needs none. Small blocks hold the heads of requests until the response; large blocks hold bodies
// in transit; a block for responses has room for a body of 64 KiB with its head, so that it passes
// in one read and one write. Loop thread only; it must outlive its blocks.
class BlockPool {
 public:
  static constexpr std::size_t kSmall = 4 * 1024;
  static constexpr std::size_t kLarge = 32 * 1024;
  static constexpr std::size_t kResponse = 68 * 1024;

  char* take(std::size_t size) {
    auto& free = free_of(size);
    if (free.empty()) return new char[size];
    char* block = free.back().release();
    free.pop_back();
    return block;
  }
  void give(char* block, std::size_t size) {
    std::unique_ptr<char[]> owned(block);
    auto& free = free_of(size);
    if (block != nullptr && free.size() < (size == kSmall ? kKept : kKeptLarge))
      free.push_back(std::move(owned));
  }

 private:
  // Maximum number of free blocks of a size: enough for a thousand waiting requests and for 32
  // bodies in transit each way.
  static constexpr std::size_t kKept = 1024;
  static constexpr std::size_t kKeptLarge = 32;
  std::vector<std::unique_ptr<char[]>>& free_of(std::size_t size) {
    return size == kSmall ? small_ : size == kLarge ? large_ : responses_;
  }
  std::vector<std::unique_ptr<char[]>> small_;
  std::vector<std::unique_ptr<char[]>> large_;
  std::vector<std::unique_ptr<char[]>> responses_;
};

// Received and unconsumed bytes of a connection, in one block.
class Buffer {
 public:
  // `first`: size of the first block.
  explicit Buffer(BlockPool& pool, std::size_t first = BlockPool::kLarge)
      : pool_(&pool), first_(first) {}
  ~Buffer() { pool_->give(data_, size_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] std::string_view bytes() const { return {data_ + begin_, end_ - begin_}; }
  [[nodiscard]] bool empty() const { return begin_ == end_; }
  void consume(std::size_t size) { begin_ += size; }

  // Returns the free space behind the bytes; empty if the block is full. Does not move the bytes.
  std::span<char> room() {
    if (data_ == nullptr) {
      size_ = first_;
      data_ = pool_->take(size_);
      begin_ = end_ = 0;
    }
    if (empty()) begin_ = end_ = 0;
    return {data_ + end_, size_ - end_};
  }
  void commit(std::size_t size) { end_ += size; }

  // Replaces a full small block by a large one. Returns whether it did; slices are then invalid.
  bool grow() {
    if (data_ == nullptr || end_ < size_ || size_ != BlockPool::kSmall) return false;
    char* larger = pool_->take(BlockPool::kLarge);
    std::memcpy(larger, data_ + begin_, end_ - begin_);
    pool_->give(data_, size_);
    data_ = larger;
    size_ = BlockPool::kLarge;
    end_ -= begin_;
    begin_ = 0;
    return true;
  }
  // Moves the bytes to the start of the block; slices of them become invalid.
  void compact() {
    if (begin_ == 0) return;
    std::memmove(data_, data_ + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  // Returns the block to the pool if it is empty.
  void release() {
    if (!empty()) return;
    pool_->give(std::exchange(data_, nullptr), size_);
    begin_ = end_ = 0;
  }
  // Swaps the blocks of two buffers.
  void swap(Buffer& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(begin_, other.begin_);
    std::swap(end_, other.end_);
  }

 private:
  BlockPool* pool_;
  std::size_t first_;
  char* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace gitops::net
