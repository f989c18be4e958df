#include "tunnel-server/host_table.hpp"

#include <chrono>

#include <gmock/gmock.h>

namespace gitops::tunnel_server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using tunnel::NewProxy;

constexpr const char* kDomain = "example.test";

NewProxy proxy(std::string subdomain) {
  return {.proxy_name = subdomain, .proxy_type = "http", .subdomain = subdomain};
}

std::string mistake(const NewProxy& proxy, std::string_view domain = kDomain) {
  const auto offer = read_offer(proxy, domain);
  return offer ? "" : offer.error().message;
}

std::shared_ptr<const Offer> offer_of(const NewProxy& proxy) {
  return std::make_shared<const Offer>(read_offer(proxy, kDomain).value());
}

Owner owner(SessionId session, std::string run_id = {}, bool is_confirmed = false) {
  if (run_id.empty()) {
    return {.session = session,
            .run_id = "run-" + std::to_string(session),
            .is_confirmed = is_confirmed};
  }
  return {.session = session, .run_id = run_id, .replaces = run_id, .is_confirmed = is_confirmed};
}

TEST(CanonicalHost, IsLowerCaseWithoutPortAndDot) {
  EXPECT_EQ(canonical_host("A-rt.Example.TEST:8080"), "a-rt.example.test");
  EXPECT_EQ(canonical_host("a.example.test."), "a.example.test");
  EXPECT_EQ(canonical_host("a.example.test.:80"), "a.example.test");
  for (const char* bad : {"", ".", "a..b", "-a.b", "a-.b", "a b", "a_b.c", "*.b", "[::1]",
                          "ex\xc3\xa4.test", "a.b:80:80", "a/b", "a.b.."}) {
    EXPECT_EQ(canonical_host(bad), "") << bad;
  }
  EXPECT_EQ(canonical_host(std::string(64, 'a') + ".test"), "");
}

TEST(ReadOffer, JoinsSubdomainAndDomains) {
  auto asked = proxy("Acc-RT");
  asked.custom_domains = {"WWW.other.test"};
  asked.locations = {"/api", "/"};
  const auto offer = read_offer(asked, kDomain);
  ASSERT_TRUE(offer);
  EXPECT_THAT(offer->domains, ElementsAre("acc-rt.example.test", "www.other.test"));
  EXPECT_THAT(offer->locations, ElementsAre("", "/api"));
}

TEST(ReadOffer, RefusesInTheWordsOfFrp) {
  EXPECT_EQ(mistake(proxy("a.b")), "'.' and '*' are not supported in subdomain");
  EXPECT_EQ(mistake(proxy("*")), "'.' and '*' are not supported in subdomain");
  EXPECT_THAT(mistake(proxy("a"), ""), HasSubstr("subdomain is not supported"));
  EXPECT_THAT(mistake({.proxy_name = "a", .proxy_type = "http"}),
              HasSubstr("should set at least one of them"));
  NewProxy below{.proxy_name = "a", .proxy_type = "http", .custom_domains = {"b.EXAMPLE.test"}};
  EXPECT_EQ(mistake(below),
            "custom domain [b.EXAMPLE.test] should not belong to subdomain host [example.test]");
  below.custom_domains = {"example.test"};
  EXPECT_THAT(mistake(below), HasSubstr("should not belong to subdomain host"));
  EXPECT_EQ(mistake({.proxy_name = "a", .remote_port = 22}),
            "proxy type [tcp] is not supported, only http is");
}

TEST(ReadOffer, AC16_NoVariantOfANameIsAnotherHost) {
  for (const char* name : {"a.", "-a", "a-", "a_b", "a b", "ex\xc3\xa4", "a%2e", "a:80", "a/b",
                           "xn--\xc3\xa4", "a\xe3\x80\x82"}) {
    EXPECT_NE(mistake(proxy(name)), "") << name;
  }
  EXPECT_NE(mistake({.proxy_name = "a", .proxy_type = "http", .custom_domains = {"*.other.test"}}),
            "");
  EXPECT_NE(mistake({.proxy_name = "a", .proxy_type = "http", .custom_domains = {"*"}}), "");
  EXPECT_NE(mistake(proxy(std::string(64, 'a'))), "");
}

TEST(ReadOffer, AC17_IgnoresNothingThatProtects) {
  for (const auto& change : std::vector<std::function<void(NewProxy&)>>{
           [](NewProxy& p) { p.group = "g"; }, [](NewProxy& p) { p.route_by_http_user = "u"; },
           [](NewProxy& p) { p.headers = {{"X-A", "b"}}; },
           [](NewProxy& p) { p.response_headers = {{"X-A", "b"}}; },
           [](NewProxy& p) { p.ips_allow_list = {"10.0.0.0/8", "somewhere"}; },
           [](NewProxy& p) { p.locations = {"api"}; },
           [](NewProxy& p) { p.host_header_rewrite = "a\r\nb"; }}) {
    auto asked = proxy("a");
    change(asked);
    EXPECT_NE(mistake(asked), "");
  }
}

TEST(HostTable, FindsTheLongestLocation) {
  HostTable table;
  auto first = proxy("a");
  ASSERT_TRUE(table.add(owner(1), offer_of(first)));
  first.proxy_name = "api";
  first.locations = {"/api", "/api/v2"};
  ASSERT_TRUE(table.add(owner(1), offer_of(first)));
  EXPECT_EQ(table.find("a.example.test", "/")->location, "");
  EXPECT_EQ(table.find("A.example.test:80", "/apix")->location, "/api");
  EXPECT_EQ(table.find("a.example.test.", "/api/v2/x")->location, "/api/v2");
  EXPECT_EQ(table.find("b.example.test", "/"), nullptr);
  EXPECT_EQ(table.find("a.example.test.other", "/"), nullptr);
  EXPECT_EQ(table.size(), 3u);
}

TEST(HostTable, AC16_AHostIsNotTakenFromItsClient) {
  HostTable table;
  ASSERT_TRUE(table.add(owner(1), offer_of(proxy("a"))));
  auto same_name = table.add(owner(2), offer_of(proxy("a")));
  ASSERT_FALSE(same_name);
  EXPECT_EQ(same_name.error().message, "proxy name [a] is already in use");
  auto other_name = proxy("a");
  other_name.proxy_name = "b";
  EXPECT_EQ(table.add(owner(2), offer_of(other_name)).error().message, "router config conflict");
  // Nor a part of it.
  other_name.locations = {"/admin"};
  EXPECT_EQ(table.add(owner(2), offer_of(other_name)).error().message, "router config conflict");
  auto name_only = proxy("c");
  name_only.proxy_name = "a";
  EXPECT_EQ(table.add(owner(2), offer_of(name_only)).error().message,
            "proxy name [a] is already in use");
  EXPECT_THAT(table.domains_of(2), IsEmpty());
  EXPECT_EQ(table.find("a.example.test", "/admin")->entries.back().owner.session, 1u);
}

TEST(HostTable, NothingOfARefusedOfferIsAdded) {
  HostTable table;
  ASSERT_TRUE(table.add(owner(1), offer_of(proxy("a"))));
  auto both = proxy("b");
  both.custom_domains = {"www.other.test"};
  ASSERT_TRUE(table.add(owner(1), offer_of(both)));
  both.subdomain = "c";
  both.proxy_name = "c";
  EXPECT_FALSE(table.add(owner(2), offer_of(both)));
  EXPECT_EQ(table.find("c.example.test", "/"), nullptr);
}

TEST(HostTable, TheNewestClientOfARuntimeServesAndTheOldOneStaysBehindIt) {
  HostTable table;
  ASSERT_TRUE(table.add(owner(1, "old", true), offer_of(proxy("a"))));
  const auto superfluous = table.add(owner(2, "new", true), offer_of(proxy("a")));
  ASSERT_TRUE(superfluous);
  EXPECT_THAT(*superfluous, IsEmpty());
  EXPECT_EQ(table.find("a.example.test", "/")->entries.back().owner.session, 2u);
  EXPECT_FALSE(table.domains_of(1)[0].is_serving);
  EXPECT_TRUE(table.domains_of(2)[0].is_serving);
  table.remove(2);
  EXPECT_EQ(table.find("a.example.test", "/")->entries.back().owner.session, 1u);
  table.remove(1, "a");
  EXPECT_EQ(table.find("a.example.test", "/"), nullptr);
  EXPECT_EQ(table.size(), 0u);
}

TEST(HostTable, TheLinksOfTheNewestClientServeTogether) {
  HostTable table;
  const auto link = [](SessionId session, std::string client) {
    auto of_client = owner(session, {}, true);
    of_client.client = std::move(client);
    return of_client;
  };
  for (const auto& [session, client] : std::vector<std::pair<SessionId, std::string>>{
           {1, "old"}, {2, "new"}, {3, "new"}, {4, "old"}}) {
    ASSERT_TRUE(table.add(link(session, client), offer_of(proxy("a"))));
  }
  std::vector<SessionId> order;
  for (const auto& entry : table.find("a.example.test", "/")->entries) {
    order.push_back(entry.owner.session);
  }
  EXPECT_THAT(order, ElementsAre(1, 4, 2, 3));
  for (const SessionId session : {1U, 2U, 3U, 4U}) {
    EXPECT_EQ(table.domains_of(session)[0].is_serving, session == 2 || session == 3) << session;
  }
  table.remove(2);
  table.remove(3);
  EXPECT_TRUE(table.domains_of(1)[0].is_serving);
  EXPECT_TRUE(table.domains_of(4)[0].is_serving);
}

TEST(HostTable, AClientCostsTheSameAmongFewAndAmongMany) {
  const auto time_of = [](std::size_t hosts) {
    HostTable table;
    for (SessionId id = 1; id <= hosts; ++id) {
      EXPECT_TRUE(table.add(owner(id), offer_of(proxy("h-" + std::to_string(id)))));
    }
    auto best = std::chrono::nanoseconds::max();
    for (int round = 0; round < 20; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      for (SessionId id = 1'000'000; id < 1'000'020; ++id) {
        EXPECT_TRUE(table.add(owner(id), offer_of(proxy("n-" + std::to_string(id)))));
        EXPECT_EQ(table.domains_of(id).size(), 1u);
        table.remove(id);
      }
      best = std::min<std::chrono::nanoseconds>(best, std::chrono::steady_clock::now() - begin);
    }
    EXPECT_EQ(table.size(), hosts);
    return best;
  };
  // Walking the table takes fifty times as long.
  EXPECT_LT(time_of(5'000), 10 * time_of(100));
}

TEST(HostTable, AClientThatCameBackReplacesItself) {
  HostTable table;
  ASSERT_TRUE(table.add(owner(1, "same"), offer_of(proxy("a"))));
  EXPECT_THAT(table.add(owner(2, "same"), offer_of(proxy("a"))).value(), ElementsAre(1u));
}

TEST(HostTable, TheOldestOfTooManyMustGo) {
  HostTable table;
  for (SessionId id = 1; id <= HostTable::kMaxEntries; ++id) {
    EXPECT_THAT(table.add(owner(id, {}, true), offer_of(proxy("a"))).value(), IsEmpty());
  }
  EXPECT_THAT(table.add(owner(99, {}, true), offer_of(proxy("a"))).value(), ElementsAre(1u));
}

TEST(HostTable, TellsEachChange) {
  HostTable table;
  std::vector<std::string> changes;
  table.changed = [&](const HostTable::Host& host) {
    changes.push_back(host.domain + host.location + " " + std::to_string(host.entries.size()));
  };
  auto asked = proxy("a");
  asked.locations = {"/x", "/y"};
  ASSERT_TRUE(table.add(owner(1), offer_of(asked)));
  table.remove(7);
  table.remove(1);
  EXPECT_THAT(changes,
              ElementsAre("a.example.test/x 1", "a.example.test/y 1", testing::_, testing::_));
  EXPECT_TRUE(changes.back().ends_with(" 0"));
}

}  // namespace
}  // namespace gitops::tunnel_server
