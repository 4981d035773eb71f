//! How long a chip will still do, for whoever looks after many: from what the log counts and what the chip is rated for.

use std::fmt;
use std::path::Path;

use anyhow::anyhow;
use nandu::LogStats;
use nandu_fuse::HEALTH_XATTR;
use nandu_nand::Geometry;
use serde_json::{Value, json};

use crate::units;

/// Percent of what a chip is rated for from which on somebody should be told.
const WARNING_PERCENT: u64 = 90;

/// Wear and losses of a chip with a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Health {
    pub(crate) erase_count_min: u32,
    pub(crate) erase_count_mean: u32,
    pub(crate) erase_count_max: u32,
    pub(crate) endurance: u32,
    pub(crate) bad_blocks: u32,
    pub(crate) bad_block_max: u32,
    pub(crate) damaged_blocks: u32,
    pub(crate) tail_lost: u32,
    pub(crate) free_blocks: u32,
    pub(crate) live_pages: u32,
    pub(crate) capacity_pages: u32,
}

/// What it comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Good,
    /// Near the end of what the chip is rated for.
    Warning,
    /// Beyond it, or something is lost already.
    Bad,
}

impl Verdict {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Verdict::Good => "good",
            Verdict::Warning => "warning",
            Verdict::Bad => "bad",
        }
    }
}

impl Health {
    pub(crate) fn of(stats: &LogStats, geometry: &Geometry) -> Health {
        Health {
            erase_count_min: stats.erase_count_min,
            erase_count_mean: stats.erase_count_mean(),
            erase_count_max: stats.erase_count_max,
            endurance: geometry.endurance,
            bad_blocks: stats.bad_blocks,
            bad_block_max: geometry.bad_block_max,
            damaged_blocks: stats.damaged_blocks,
            tail_lost: stats.tail.lost,
            free_blocks: stats.pool_blocks,
            live_pages: stats.live_pages,
            capacity_pages: stats.capacity_pages,
        }
    }

    /// What a mount says of itself ([`HEALTH_XATTR`]).
    fn parse(text: &str) -> Option<Health> {
        let numbers: Vec<u32> = text.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        let [
            erase_count_min,
            erase_count_mean,
            erase_count_max,
            endurance,
            bad_blocks,
            bad_block_max,
            damaged_blocks,
            tail_lost,
            free_blocks,
            live_pages,
            capacity_pages,
        ] = numbers[..]
        else {
            return None;
        };
        Some(Health {
            erase_count_min,
            erase_count_mean,
            erase_count_max,
            endurance,
            bad_blocks,
            bad_block_max,
            damaged_blocks,
            tail_lost,
            free_blocks,
            live_pages,
            capacity_pages,
        })
    }

    /// Asks whoever serves the mount that a directory is in.
    pub(crate) fn ask(directory: &Path) -> anyhow::Result<Health> {
        let name = directory.display();
        let mut text = [0; 256];
        let size = rustix::fs::getxattr(directory, HEALTH_XATTR, &mut text[..])
            .map_err(|_| anyhow!("{name}: not a directory of a mount of nandu"))?;
        let text = String::from_utf8_lossy(&text[..size]);
        Health::parse(&text).ok_or_else(|| anyhow!("{name}: the mount says '{text}'"))
    }

    /// Erases of the most worn block in percent of what a block is rated for.
    pub(crate) fn life_used_percent(&self) -> f64 {
        units::percent(self.erase_count_max.into(), self.endurance.into())
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let share = |part: u32, whole: u32| u64::from(part) * 100 / u64::from(whole.max(1));
        let used = share(self.erase_count_max, self.endurance).max(share(self.bad_blocks, self.bad_block_max));
        if used > 100 || self.damaged_blocks > 0 || self.tail_lost > 0 {
            Verdict::Bad
        } else if used >= WARNING_PERCENT {
            Verdict::Warning
        } else {
            Verdict::Good
        }
    }

    /// What somebody should be told, a line for each; nothing while all is well.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let near = |part: u32, whole: u32| u64::from(part) * 100 >= u64::from(whole) * WARNING_PERCENT;
        let mut lines = Vec::new();
        if near(self.erase_count_max, self.endurance) {
            let (count, rated) =
                (units::things(self.erase_count_max.into(), "erase"), units::count_of(self.endurance.into()));
            lines.push(format!("near the end of its life: {count} of the most worn block, which is rated for {rated}"));
        }
        if near(self.bad_blocks, self.bad_block_max) {
            let (count, rated) =
                (units::things(self.bad_blocks.into(), "bad block"), units::count_of(self.bad_block_max.into()));
            lines.push(format!("near the end of its life: {count}, and it is rated for {rated}"));
        }
        if self.damaged_blocks > 0 {
            let count = units::things(self.damaged_blocks.into(), "block");
            lines.push(format!("{count} with a page that cannot be read and may be needed: 'nandu check' says more"));
        }
        if self.tail_lost > 0 {
            lines.push(format!("{} that was synced is lost", units::things(self.tail_lost.into(), "page")));
        }
        lines
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "verdict": self.verdict().name(),
            "life_used_percent": self.life_used_percent(),
            "erase_count_min": self.erase_count_min,
            "erase_count_mean": self.erase_count_mean,
            "erase_count_max": self.erase_count_max,
            "endurance_erases": self.endurance,
            "bad_blocks": self.bad_blocks,
            "bad_block_max": self.bad_block_max,
            "damaged_blocks": self.damaged_blocks,
            "lost_pages": self.tail_lost,
            "free_blocks": self.free_blocks,
            "live_pages": self.live_pages,
            "capacity_pages": self.capacity_pages,
        })
    }

    /// In the text format of Prometheus, as its collector of text files takes it.
    pub(crate) fn prometheus(&self, device: &str) -> String {
        let name = device.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let figures: [(&str, &str, f64); 8] = [
            (
                "life_used_ratio",
                "Erases of the most worn block over those it is rated for.",
                f64::from(self.erase_count_max) / f64::from(self.endurance.max(1)),
            ),
            ("erase_count_mean", "Erases of a block, on average.", self.erase_count_mean.into()),
            ("erase_count_max", "Erases of the most worn block.", self.erase_count_max.into()),
            ("bad_blocks", "Blocks out of use.", self.bad_blocks.into()),
            ("bad_blocks_rated", "Bad blocks that the chip is rated for.", self.bad_block_max.into()),
            ("damaged_blocks", "Blocks with a page that cannot be read and may be needed.", self.damaged_blocks.into()),
            ("lost_pages", "Pages that were synced and are lost.", self.tail_lost.into()),
            ("free_blocks", "Blocks that hold nothing.", self.free_blocks.into()),
        ];
        let lines = figures.map(|(figure, help, value)| {
            format!("# HELP nandu_{figure} {help}\n# TYPE nandu_{figure} gauge\nnandu_{figure}{{device=\"{name}\"}} {value}\n")
        });
        lines.concat()
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} to {} erases a block, mean {}, {} % of a life; {} of {} rated bad blocks",
            self.verdict().name(),
            units::count_of(self.erase_count_min.into()),
            units::count_of(self.erase_count_max.into()),
            units::count_of(self.erase_count_mean.into()),
            self.life_used_percent(),
            units::count_of(self.bad_blocks.into()),
            units::count_of(self.bad_block_max.into()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: Health = Health {
        erase_count_min: 1,
        erase_count_mean: 5,
        erase_count_max: 9,
        endurance: 1000,
        bad_blocks: 2,
        bad_block_max: 20,
        damaged_blocks: 0,
        tail_lost: 0,
        free_blocks: 7,
        live_pages: 100,
        capacity_pages: 1000,
    };

    #[test]
    fn a_warning_comes_before_the_end_of_life_and_by_each_cause() {
        assert_eq!((NEW.verdict(), NEW.warnings().len()), (Verdict::Good, 0));
        for (health, verdict) in [
            (Health { erase_count_max: 899, ..NEW }, Verdict::Good),
            (Health { erase_count_max: 900, ..NEW }, Verdict::Warning),
            (Health { erase_count_max: 1010, ..NEW }, Verdict::Bad),
            (Health { bad_blocks: 18, ..NEW }, Verdict::Warning),
            (Health { bad_blocks: 21, ..NEW }, Verdict::Bad),
            (Health { damaged_blocks: 1, ..NEW }, Verdict::Bad),
            (Health { tail_lost: 1, ..NEW }, Verdict::Bad),
        ] {
            assert_eq!(health.verdict(), verdict, "{health:?}");
            assert_eq!(health.warnings().len(), usize::from(verdict > Verdict::Good), "{health:?}");
        }
    }

    #[test]
    fn a_mount_says_eleven_numbers() {
        assert_eq!(Health::parse("1 5 9 1000 2 20 0 0 7 100 1000"), Some(NEW));
        assert_eq!(Health::parse("1 5 9 1000 2 20 0 0 7 100"), None);
        assert_eq!(Health::parse(""), None);
    }

    #[test]
    fn the_text_for_prometheus_names_each_figure_once_with_the_device() {
        let text = NEW.prometheus("/dev/mtd3 \"data\"");
        assert!(
            text.contains(
                "# TYPE nandu_life_used_ratio gauge\nnandu_life_used_ratio{device=\"/dev/mtd3 \\\"data\\\"\"} 0.009\n"
            ),
            "{text}"
        );
        assert_eq!(text.lines().filter(|line| !line.starts_with('#')).count(), 8);
        assert!(text.ends_with('\n'));
    }
}
