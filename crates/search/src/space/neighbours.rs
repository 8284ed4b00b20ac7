use super::points::Space;

impl Space {
    /// Valid points that differ in one parameter, nearest values first.
    #[must_use]
    pub fn neighbours(&self, number: u64) -> Vec<u64> {
        let mut point = self.point(number);
        let mut neighbours = Vec::new();
        for (place, parameter) in self.parameters().iter().enumerate() {
            let own = point[place];
            for value in 0..parameter.values.len() as u16 {
                if value != own {
                    point[place] = value;
                    neighbours.extend(self.number(&point).map(|number| (value.abs_diff(own), number)));
                }
            }
            point[place] = own;
        }
        neighbours.sort_unstable();
        neighbours.into_iter().map(|(_, number)| number).collect()
    }

    /// Valid points that differ in exactly two parameters.
    #[must_use]
    pub fn second_neighbours(&self, number: u64) -> Vec<u64> {
        let mut point = self.point(number);
        let own = point.clone();
        let mut found = Vec::new();
        for first in 0..own.len() {
            for second in first + 1..own.len() {
                for one in (0..self.parameters()[first].values.len() as u16).filter(|&value| value != own[first]) {
                    point[first] = one;
                    for two in (0..self.parameters()[second].values.len() as u16).filter(|&value| value != own[second])
                    {
                        point[second] = two;
                        found.extend(self.number(&point));
                    }
                }
                point[first] = own[first];
                point[second] = own[second];
            }
        }
        found
    }

    /// Number of parameters in which two points differ.
    #[must_use]
    pub fn distance(&self, one: u64, other: u64) -> usize {
        self.point(one).iter().zip(&*self.point(other)).filter(|(a, b)| a != b).count()
    }
}
