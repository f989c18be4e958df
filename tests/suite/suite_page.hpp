#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "common/core/async.hpp"
#include "common/http/client.hpp"
#include "common/http/url.hpp"
#include "demo/open_page.hpp"
#include "suite/suite_model.hpp"

namespace gitops::test {

// The pages of the console that somebody has open: the list of Applications, and the pages of some of them. They follow the
// stream as the console does: the list takes its rows from there. The page of an Application reads again by GraphQL when
// its Application has changed or something is gone, and takes the states of its resources from the stream. All read again
// after a `reset`. Loop thread; call stop() before the destructor.
class SuitePage {
 public:
  // Reads a document of GraphQL and returns the value of its first field. Throws when that is not possible.
  using Ask = std::function<Task<nlohmann::json>(std::string document)>;
  struct Options {
    http::Url control_plane;  // of the stream
    std::string key;
    std::map<std::string, std::string>
        open;          // the uid of each Application whose page is open, by name
    std::string kind;  // of the resources that are rows
  };
  SuitePage(const Executor& executor, http::Client& client, Ask ask, Options options);

  Task<> wait_until_live() { co_await stream_->wait_until_live(); }
  // What is shown now. Throws when a page has to be read and cannot be.
  Task<PageRows> rows();
  // What pages show that are opened now, without a stream; with the page of each resource, which has its content.
  Task<PageRows> read() { return read(Contents::yes); }
  // Rows and resets that came by the stream.
  [[nodiscard]] std::size_t received() const { return stream_->rows().size(); }
  [[nodiscard]] std::size_t resets() const { return stream_->resets(); }
  [[nodiscard]] const demo::OpenPage& stream() const { return *stream_; }
  Task<> stop() { co_await stream_->stop(); }

 private:
  enum class Contents : std::uint8_t { no, yes };
  Task<PageRows> read(Contents contents);
  using Uids = std::map<RowPlace, std::string>;
  void apply(const demo::OpenPage::Row& row);
  // What the page of a resource shows of it.
  Task<std::string> content_of(std::string app, std::string resource);
  [[nodiscard]] std::string page_of_topic(const std::string& topic) const;

  Ask ask_;
  Options options_;
  std::unique_ptr<demo::OpenPage> stream_;
  PageRows rows_;
  Uids uids_;         // of Applications
  PageRows patches_;  // of resources, by the stream
  std::size_t applied_ = 0;
  std::size_t resets_ = 0;
  bool is_outdated_ = false;  // the page of an Application has to be read again
};

}  // namespace gitops::test
