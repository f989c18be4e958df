#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "app-proxy/providers/git_types.hpp"
#include "common/core/time.hpp"
#include "common/http/message.hpp"

namespace gitops::app_proxy {

// Time for which a host permits a response to be used again without a request: its Cache-Control
// (RFC 9111) with `max-age`, minus its Age, and at most a minute. Zero without such a field, or
// when the host forbids it.
std::chrono::seconds fresh_for(const http::Headers& headers);

// Cache of the last responses of hosts to GET requests, for If-None-Match and for times when a host
// throttles. Responses are separate for each token. Over the limit of bytes, the least recently
// used responses are evicted, first those of a token that exceeds its share. Pure; one thread.
class AnswerCache {
 public:
  struct Limits {
    std::size_t bytes = 16UL * 1024 * 1024;
    std::size_t bytes_of_owner = 2UL * 1024 * 1024;   // share of one token
    std::size_t bytes_of_answer = 1UL * 1024 * 1024;  // larger ones are not cached
  };
  struct Entry {
    std::string etag;       // empty: the host sent none
    http::Headers headers;  // those that callers read
    std::string body;
    std::shared_ptr<const HostPage> page = {};  // replaces the body of a page that was parsed
    Clock::time_point fresh_until = {};
  };

  explicit AnswerCache(Limits limits) : limits_(limits) {}

  // Returns the cached response; null when there is none. Valid until the next put() or forget().
  const Entry* find(std::string_view owner, std::string_view url);
  void put(std::string_view owner, std::string_view url, Entry entry);
  // Marks a cached response as fresh after a 304 of the host.
  void renew(std::string_view owner, std::string_view url, Clock::time_point fresh_until);
  // Ends the freshness of all responses of a token, after a change that it made at its host.
  void expire(std::string_view owner);
  void forget(std::string_view owner, std::string_view url);
  // Evicts all responses of a token.
  void forget(std::string_view owner);

  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Kept {
    std::string owner;
    std::string key;
    Entry entry;
    std::size_t bytes = 0;
  };
  using Order = std::list<Kept>;  // most recently used first

  void erase(Order::iterator entry);

  Limits limits_;
  Order order_;
  std::unordered_map<std::string_view, Order::iterator> entries_;  // by Kept::key
  std::unordered_map<std::string, std::size_t> bytes_of_owner_;
  std::size_t bytes_ = 0;
};

}  // namespace gitops::app_proxy
