/*
 * The protocol of the log and the tree on one page: commits, the window, deaths, erases, cuts.
 *
 * Two keys, each with its leaf. A commit holds one of the leaves and says where the other is; it lists changes that wait for their leaf, and names at most one older commit whose list is needed,
 * too: the window has two members. The power may go in each program and erase, and a page that is torn may read well now and not later.
 *
 * What has to hold: after each cut, however often recovery is cut, each key reads what was synced, or what was put behind that.
 *
 * A rule is left out with one of -DEARLY (R3, pages die with a commit), -DNO_COPY (N9), -DNO_OWN (W1), -DNO_CARRY (W2), -DMEMBERS_DIE (W5): each is found. Numbers as in docs/invariants.md.
 *
 * Left out: the ready list and checkpoints (any block that holds nothing live may be erased), survivors and the collector (a commit of the leaf moves it), raw pages, pages of a tree that are neither
 * leaf nor root, programs that fail. `cargo xtask protocol` runs it.
 */
#define BLOCKS 5
#define PAGES 2
#define ALL 10
#define NONE 15

/* What is done at most. */
#ifndef SYNCS
#define SYNCS 2
#endif
#ifndef PUTS
#define PUTS 2
#endif
#ifndef CUTS
#define CUTS 2
#endif

/* How a page reads: a shaky one reads well and may be lost at any mount. */
mtype = { erased, valid, shaky, lost };

/* Flash. */
mtype how[ALL];
byte seq[ALL], leaf[ALL], val[ALL], other[ALL], member[ALL];
byte list0[ALL], list1[ALL];

/* Memory: the newest commit, where the next one goes, and what waits. */
byte newest, next;
byte wait0, wait1;
/* Whether a change is in no commit yet. */
bool fresh0, fresh1;
byte number;

/* What the user knows: what was synced, and what was put last. */
byte synced0, synced1, put0, put1;
byte puts, syncs, cuts;
byte p, q, old, k, b, found;
bool went, idle;

#define block_of(page) ((page) / PAGES)

/* A search from the newest commit, or a mount, needs this page. */
#ifdef MEMBERS_DIE
#define is_live(page) ((page) == newest || (page) == other[newest])
#else
#define is_live(page) ((page) == newest || (page) == other[newest] || (page) == member[newest])
#endif
#define is_block_live(block) (is_live((block) * PAGES) || is_live((block) * PAGES + 1))
#define is_block_erased(block) (how[(block) * PAGES] == erased && how[(block) * PAGES + 1] == erased)

#define in_leaf(key) (leaf[newest] == (key) -> val[newest] : val[other[newest]])

/* Programs page p, which was filled in; the power may go. */
inline program() {
    d_step { assert(how[p] == erased); number++; seq[p] = number; }
    if
    :: d_step { how[p] = valid; went = false }
    :: cuts < CUTS -> cuts++; went = true;
       if
       :: how[p] = erased
       :: how[p] = valid
       :: how[p] = shaky
       :: d_step { how[p] = lost; forget(p) }
       fi
    fi
}

/* What is in a page does not matter any more, so that states are alike. */
inline forget(page) {
    seq[page] = 0; leaf[page] = NONE; val[page] = 0; other[page] = NONE; member[page] = NONE; list0[page] = NONE; list1[page] = NONE
}

/* Erases block b; the power may go. */
inline erase() {
    if
    :: d_step { how[b * PAGES] = erased; how[b * PAGES + 1] = erased; forget(b * PAGES); forget(b * PAGES + 1); went = false }
    :: cuts < CUTS -> cuts++; went = true;
       if
       :: how[b * PAGES] = erased
       :: how[b * PAGES] = lost
       :: skip
       fi;
       if
       :: how[b * PAGES + 1] = erased
       :: how[b * PAGES + 1] = lost
       :: skip
       fi
    fi
}

/* b becomes an erased block in which no commit goes; NONE if there is none. */
inline find_erased() {
    d_step {
        b = NONE;
        for (q : 0 .. BLOCKS - 1) {
            if
            :: is_block_erased(q) && block_of(next) != q -> b = q
            :: else
            fi
        }
    }
}

/* A commit with the leaf of key k; what waits goes to that leaf, or is listed. */
inline sync() {
    p = next;
    if
    :: p == NONE -> find_erased(); p = (b == NONE -> NONE : b * PAGES)
    :: else
    fi;
    if
    :: p != NONE ->
       syncs++;
       old = newest;
       d_step {
           leaf[p] = k;
           val[p] = (k == 0 -> (wait0 != NONE -> wait0 : in_leaf(0)) : (wait1 != NONE -> wait1 : in_leaf(1)));
           other[p] = (leaf[newest] == k -> other[newest] : newest);
       }
       /* The commit before stays a member, or leaves: then what it lists and still waits is carried. */
       if
       :: d_step {
              member[p] = newest;
#ifdef NO_CARRY
              list0[p] = (fresh0 -> wait0 : NONE);
              list1[p] = (fresh1 -> wait1 : NONE);
#else
              /* The member before that one leaves. */
              list0[p] = (fresh0 || list0[newest] == NONE -> wait0 : NONE);
              list1[p] = (fresh1 || list1[newest] == NONE -> wait1 : NONE);
#endif
#ifndef NO_OWN
              /* A member may list an older value of the key. */
              if
              :: k == 0 && wait0 != NONE -> list0[p] = wait0
              :: k == 1 && wait1 != NONE -> list1[p] = wait1
              :: else
              fi
#else
              if
              :: k == 0 -> list0[p] = NONE
              :: else -> list1[p] = NONE
              fi
#endif
          }
       :: d_step { member[p] = NONE; list0[p] = (k == 0 -> NONE : wait0); list1[p] = (k == 1 -> NONE : wait1) }
       fi;
#ifdef EARLY
       /* The page that the leaf was in counts as dead before the commit is durable. */
       b = block_of(leaf[old] == k -> old : other[old]);
       if
       :: b != block_of(p) && b != block_of(old) && b != block_of(other[p]) -> erase()
       :: went = false
       fi;
#else
       went = false;
#endif
       if
       :: !went -> program()
       :: else
       fi;
       if
       :: !went -> d_step {
              newest = p;
              next = (p % PAGES == PAGES - 1 -> NONE : p + 1);
              /* Listed by a member that stays, it goes on waiting as far as a mount knows; in its leaf it does not wait any more. */
              if
              :: k == 0 -> wait0 = NONE
              :: else -> wait1 = NONE
              fi;
              fresh0 = false; fresh1 = false;
              synced0 = put0; synced1 = put1;
          }
       :: else
       fi
    :: else -> went = false
    fi
}

/* A mount: the newest commit that verifies, and the lists of its members, older ones first. */
inline mount() {
    d_step { newest = NONE; p = 0 }
    do
    :: p < ALL ->
       if
       :: how[p] == shaky -> d_step { how[p] = lost; forget(p) }
       :: true
       fi;
       d_step {
           if
           :: (how[p] == valid || how[p] == shaky) && (newest == NONE || seq[p] > seq[newest]) -> newest = p
           :: else
           fi;
           p++
       }
    :: else -> break
    od;
    assert(newest != NONE);
    d_step {
        assert(how[other[newest]] == valid || how[other[newest]] == shaky);
        wait0 = NONE; wait1 = NONE;
        if
        :: member[newest] != NONE ->
           assert(how[member[newest]] == valid || how[member[newest]] == shaky);
           wait0 = list0[member[newest]]; wait1 = list1[member[newest]]
        :: else
        fi;
        wait0 = (list0[newest] != NONE -> list0[newest] : wait0);
        wait1 = (list1[newest] != NONE -> list1[newest] : wait1);
        fresh0 = false; fresh1 = false;
        number = number + 1;
        found = (wait0 != NONE -> wait0 : in_leaf(0));
        assert(found == synced0 || found == put0);
        found = (wait1 != NONE -> wait1 : in_leaf(1));
        assert(found == synced1 || found == put1);
    }
}

/* Behind a cut: mount, copy the newest commit to another block, and go on there. */
inline recover() {
    do
    :: true ->
       next = newest;
       mount();
#ifdef NO_COPY
       next = NONE; went = false;
       /* Goes on behind the page that may be torn. */
#else
       next = newest;
       find_erased();
       if
       :: b == NONE ->
          /* A block that holds nothing is erased for it. */
          d_step {
              for (q : 0 .. BLOCKS - 1) {
                  if
                  :: !is_block_live(q) -> b = q
                  :: else
                  fi
              }
              assert(b != NONE);
          }
          erase()
       :: else -> went = false
       fi;
       if
       :: !went ->
          d_step {
              p = b * PAGES;
              leaf[p] = leaf[newest]; val[p] = val[newest]; other[p] = other[newest]; member[p] = member[newest];
              list0[p] = list0[newest]; list1[p] = list1[newest];
          }
          program();
          if
          :: !went -> newest = p; next = p + 1
          :: else
          fi
       :: else
       fi;
#endif
       if
       :: !went ->
          /* From here on it is durable. */
          d_step {
              found = (wait0 != NONE -> wait0 : in_leaf(0)); synced0 = found; put0 = found;
              found = (wait1 != NONE -> wait1 : in_leaf(1)); synced1 = found; put1 = found;
          }
          break
       :: else
       fi
    od
}

init {
    d_step {
        for (p : 0 .. ALL - 1) {
            how[p] = erased; forget(p)
        }
        how[0] = valid; seq[0] = 1; leaf[0] = 1; other[0] = 1;
        how[1] = valid; seq[1] = 2; leaf[1] = 0; other[1] = 0;
        newest = 1; next = NONE; number = 2;
        wait0 = NONE; wait1 = NONE;
    }
    do
    :: d_step { idle -> idle = false; p = 0; q = 0; old = 0; k = 0; b = 0; found = 0; went = false }
    :: !idle -> idle = true;
       if
    /* A put waits. */
    :: puts < PUTS -> d_step { puts++; put0 = puts; wait0 = puts; fresh0 = true }
    :: puts < PUTS -> d_step { puts++; put1 = puts; wait1 = puts; fresh1 = true }
    :: syncs < SYNCS ->
       if
       :: k = 0
       :: k = 1
       fi;
       sync();
       if
       :: went -> recover()
       :: else
       fi
    /* A block that holds nothing that is live is erased. */
    :: true ->
       b = 0;
       do
       :: b < BLOCKS - 1 -> b++
       :: break
       od;
       if
       :: !is_block_live(b) && !is_block_erased(b) && (next == NONE || block_of(next) != b) ->
          erase();
          if
          :: went -> recover()
          :: else
          fi
       :: else
       fi
    /* The power goes between two operations. */
    :: cuts < CUTS -> cuts++; recover()
       :: syncs == SYNCS -> break
       fi
    od
}
