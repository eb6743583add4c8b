#include "checks/core/site.h"

#include "checks/core/state.h"

namespace sim::checks {

namespace {

SpinLock lock;
HashMap<uint16_t> ids;
Growable<const void*> addresses;  // code addresses by site number

constexpr uint8_t unused = 0xff;  // the value of size_log2 in a site without an access so far

}  // namespace

uint16_t site_id(const void* address) {
    Locked locked(lock);
    if (addresses.empty()) addresses.push(nullptr);
    uint16_t& id = ids.at(reinterpret_cast<uint64_t>(address));
    if (id == 0 && addresses.size() < 0xffff) {
        id = static_cast<uint16_t>(addresses.size());
        addresses.push(address);
    }
    return id;
}

const void* site_address(uint16_t id) {
    Locked locked(lock);
    return id < addresses.size() ? addresses[id] : nullptr;
}

SiteTable::SiteTable() : slots_(zeros<Slot>(slots)) {}

SiteTable::~SiteTable() {
    clear();
    free(slots_);
}

namespace {

AccessSite* new_site(const void* address, uint16_t id) {
    void* memory = aligned_alloc(alignof(AccessSite), sizeof(AccessSite));
    if (!memory) no_memory();
    AccessSite* site = static_cast<AccessSite*>(memset(memory, 0, sizeof(AccessSite)));
    site->address = address;
    site->id = id;
    site->first = site;
    site->size_log2 = unused;
    return site;
}

}  // namespace

AccessSite* SiteTable::find_slowly(const void* address) {
    AccessSite*& known = by_address_.at(reinterpret_cast<uint64_t>(address));
    if (!known) {
        known = new_site(address, site_id(address));
        sites_.push(known);
    }
    slots_[place(address)] = {address, known};
    return known;
}

AccessSite* SiteTable::variant(AccessSite* site, Space space, Access access, unsigned size_log2) {
    AccessSite* found = site->first;
    while (found && found->size_log2 != unused &&
           !(found->space == space && found->access == access && found->size_log2 == size_log2)) {
        found = found->sibling;
    }
    if (!found) {
        found = new_site(site->address, site->id);
        found->first = site->first;
        found->sibling = site->first->sibling;
        site->first->sibling = found;
    }
    found->space = space;
    found->access = access;
    found->size_log2 = static_cast<uint8_t>(size_log2);
    by_address_.at(reinterpret_cast<uint64_t>(found->address)) = found;
    slots_[place(found->address)] = {found->address, found};
    return found;
}

void SiteTable::clear() {
    for (AccessSite* site : sites_) {
        while (site) {
            AccessSite* next = site->sibling;
            free(site->log);
            free(site);
            site = next;
        }
    }
    sites_.clear();
    by_address_.clear();
    memset(static_cast<void*>(slots_), 0, slots * sizeof(Slot));
}

bool is_site(const void* address) {
    Locked locked(lock);
    return ids.find(reinterpret_cast<uint64_t>(address)) != nullptr;
}

size_t site_count() { return addresses.size(); }

void forget_site_ids(size_t kept) {
    Locked locked(lock);
    ids.clear();
    addresses.truncate(kept);
    for (size_t id = 1; id < kept; ++id) ids.at(reinterpret_cast<uint64_t>(addresses[id])) = static_cast<uint16_t>(id);
}

}  // namespace sim::checks
