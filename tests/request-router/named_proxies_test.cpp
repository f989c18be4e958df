#include "request-router/named_proxies.hpp"

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "support/run_coro.hpp"

namespace gitops::router {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(NamedProxies, FollowTheAddressesOfTheirNames) {
  test::run_in_test_time([]() -> Task<> {
    std::map<std::string, Result<net::Addresses>> answers;
    const auto address = [](const char* text) { return asio::ip::make_address(text); };
    Metrics metrics;
    net::Resolver names(
        metrics, {.look_up = [&answers](const std::string& host) { return answers.at(host); }});
    NamedProxies proxies(names);
    // The resolver asks again at most once a second.
    const auto look_up_later = [&proxies](std::vector<std::string> hosts) -> Task<bool> {
      co_await sleep_for(std::chrono::seconds(1));
      co_return co_await proxies.look_up(std::move(hosts));
    };
    const auto found = [&proxies] {
      std::vector<std::string> texts;
      for (const auto& each : proxies.addresses()) texts.push_back(each.to_string());
      return texts;
    };
    EXPECT_FALSE(co_await proxies.look_up({}));
    EXPECT_THAT(found(), IsEmpty());

    answers.emplace("pods", net::Addresses{address("10.0.0.2"), address("10.0.0.1")});
    answers.emplace("others", fail(ErrorCode::not_found, "no such host"));
    EXPECT_TRUE(co_await proxies.look_up({"pods", "others"}));
    EXPECT_THAT(found(), ElementsAre("10.0.0.1", "10.0.0.2"));
    EXPECT_FALSE(co_await proxies.look_up({"pods", "others"}));

    // A pod has gone, another one has come: nothing of the former answer is kept.
    answers.at("pods") = net::Addresses{address("10.0.0.2"), address("fd00::1")};
    answers.at("others") = net::Addresses{address("10.1.0.1")};
    EXPECT_TRUE(co_await look_up_later({"pods", "others"}));
    EXPECT_THAT(found(), ElementsAre("10.1.0.1", "10.0.0.2", "fd00::1"));

    // The name servers do not answer.
    answers.at("pods") = fail(ErrorCode::unavailable, "try again");
    EXPECT_FALSE(co_await look_up_later({"pods", "others"}));
    EXPECT_THAT(found(), ElementsAre("10.1.0.1", "10.0.0.2", "fd00::1"));

    // They say that there is no pod, and the other name is not asked for any more.
    answers.at("pods") = fail(ErrorCode::not_found, "no such host");
    EXPECT_TRUE(co_await look_up_later({"pods"}));
    EXPECT_THAT(found(), IsEmpty());
  });
}

}  // namespace
}  // namespace gitops::router
